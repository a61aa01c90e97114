"""The watcher of a server without one: what it asks of cluster and index, and whom it tells."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from submarine_jobs.backends import Stage
from submarine_jobs.backends.yarn.cluster import Survey, Waits
from submarine_jobs.client import Session
from submarine_jobs.errors import StorageError
from submarine_jobs.model import JobSpec, Profile
from submarine_jobs.tracking import IndexEntry, JobStore, Origin, bare_record
from submarine_runtime.protocol import State
from submarine_server.displays import metrics
from submarine_server.handlers.job import require_owner
from submarine_server.monitor import event_publisher, job_monitor as jobs_module
from submarine_server.monitor.index import MAX_LISTED, JobIndex
from submarine_server.monitor.job_monitor import SCHEMA
from submarine_server.monitor.poll import PollResult
from submarine_server.monitor.rows import RowBuilder
from submarine_server.service.job_details import JobDetailsCache
from tests.unit.server.job_rows import job, known, row


class Cluster:
    """A ResourceManager with some applications that go on, and some that have ended."""

    url = "http://rm:8088"

    def __init__(self, running: int, ended: int = 0) -> None:
        self.going_on = {
            self.app(n, "RUNNING")["id"]: self.app(n, "RUNNING") for n in range(running)
        }
        over = range(running, running + ended)
        self.ended = {self.app(n, "FINISHED")["id"]: self.app(n, "FINISHED") for n in over}
        self.asked: list[str] = []

    def apps(self, numbers: range, state: str) -> dict[str, dict[str, Any]]:
        return {app["id"]: app for app in (self.app(number, state) for number in numbers)}

    def app(self, number: int, state: str) -> dict[str, Any]:
        tags = f"submarine,submarine_job:{job(number)}"
        final = "SUCCEEDED" if state == "FINISHED" else "UNDEFINED"
        identity = f"application_1_{number:04}"
        return {
            "id": identity,
            "user": "me",
            "state": state,
            "finalStatus": final,
            "applicationTags": tags,
        }

    def get(self, path: str, **query: str) -> Any:
        self.asked.append(path)
        if path == "/scheduler":
            return {"scheduler": {}}
        if path == "/apps" and "states" in query:
            assert query["user"] == "me"
            return {"apps": {"app": list(self.going_on.values())}}
        if path == "/apps":
            tags = set(query["applicationTags"].split(","))
            some = [a for a in self.ended.values() if tags & set(a["applicationTags"].split(","))]
            return {"apps": {"app": some}}
        return None


def survey(cluster: Any) -> Survey:
    return Survey(cluster, Waits(cluster, "me"), "me")


def handles(*numbers: int) -> dict[str, Any]:
    return {job(n): {"application_id": f"application_1_{n:04}"} for n in numbers}


def test_a_look_is_two_questions_whatever_the_number_of_jobs() -> None:
    for count in (1, 200, 1000):
        cluster = Cluster(count)
        seen = survey(cluster).poll(handles(*range(count)))
        assert {found.stage for found in seen.values()} == {Stage.RUNNING}
        assert cluster.asked == ["/apps"]


def test_what_has_ended_is_asked_for_together_and_what_is_forgotten_once() -> None:
    cluster = Cluster(2, ended=3)
    looks = survey(cluster)
    seen = looks.poll(handles(0, 1, 2, 3, 4, 99))
    assert [seen[job(n)].stage for n in (0, 2, 4)] == [Stage.RUNNING, Stage.ENDED, Stage.ENDED]
    assert seen[job(99)].stage is Stage.UNKNOWN
    assert cluster.asked == ["/apps", "/apps", "/apps/application_1_0099"]
    cluster.asked.clear()
    assert looks.poll(handles(0, 1, 99))[job(99)].stage is Stage.UNKNOWN
    assert cluster.asked == ["/apps"]


def test_an_invalid_handle_is_harmless() -> None:
    seen = survey(Cluster(1)).poll({**handles(0), job(5): {"kind": "what"}})
    assert list(seen) == [job(0)]


@pytest.mark.slow
def test_the_index_is_read_as_it_changes(tmp_path: Path) -> None:
    store = JobStore(tmp_path / "jobs.sqlite")
    for number in range(MAX_LISTED + 50):
        store.put(known(number, State.RUNNING if number < 3 else State.SUCCEEDED))
    jobs = JobIndex(store)
    assert jobs.may_have_changed
    first = jobs.refresh()
    assert first.whole
    assert len(first.rows) == MAX_LISTED + 3
    assert first.total == MAX_LISTED + 50
    assert set(jobs.active()) == {job(0), job(1), job(2)}
    assert jobs.refresh().rows == []
    store.put(known(1, State.SUCCEEDED))
    store.put(known(999))
    store.put(known(998, State.FAILED))  # found in the job root: nothing to hurry for
    assert jobs.may_have_changed
    news = jobs.refresh()
    assert [row.job_id for row in news.rows] == [job(1), job(999), job(998)]
    assert news.changed_jobs == {job(1), job(999)}
    assert set(jobs.active()) == {job(0), job(2), job(999)}


def test_an_index_that_is_another_one_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "jobs.sqlite"
    JobStore(path).put(known(1))
    jobs = JobIndex(JobStore(path))
    jobs.refresh()
    path.rename(tmp_path / "old.sqlite")
    other = JobStore(path)
    other.put(known(2))
    other.put(known(3, State.SUCCEEDED))
    assert jobs.may_have_changed
    news = jobs.refresh()
    assert news.whole
    assert set(jobs.active()) == {job(2)}


def of(user: str, row: IndexEntry) -> IndexEntry:
    assert row.record is not None
    return replace(row, record=replace(row.record, user=user))


def test_rows_are_those_of_the_user_s_own_jobs(tmp_path: Path) -> None:
    store = JobStore(tmp_path / "jobs.sqlite")
    store.put(of("ada", known(1)))
    store.put(of("grace", known(2)))
    store.put(known(3))  # of whom nothing is known yet
    rows = RowBuilder(store, lambda origin: origin, "ada")
    news, made = rows.from_index()
    assert (news.total, {row["job_id"] for row in made}) == (2, {job(1), job(3)})
    store.put(of("grace", known(4)))
    store.put(of("ada", known(5)))
    news, made = rows.from_index()
    assert (news.total, [row["job_id"] for row in made]) == (3, [job(5)])
    going_on = rows.index.active()
    seen = PollResult({job_id: (row, row.record) for job_id, row in going_on.items() if row.record})
    assert {row["job_id"] for row in rows.from_poll(seen)} == {job(1), job(3), job(5)}


def test_a_poll_makes_rows_of_changed_jobs_only(tmp_path: Path) -> None:
    store = JobStore(tmp_path / "jobs.sqlite")
    for number in (1, 2):
        store.put(of("ada", known(number)))
    rows = RowBuilder(store, lambda origin: origin, "ada")
    rows.from_index()

    def poll(**changes: Any) -> list[str]:
        active = rows.index.active()
        found = {key: (row, replace(row.record)) for key, row in active.items() if row.record}
        entry, record = found[job(2)]
        found[job(2)] = (entry, replace(record, **changes))
        return sorted(str(row["job_id"]) for row in rows.from_poll(PollResult(found)))

    assert poll() == [job(1), job(2)]
    assert poll() == []
    assert poll(detail="waits for a GPU") == [job(2)]
    assert poll(detail="waits for a GPU") == []
    store.put_origin(job(1), Origin("a.ipynb", "cell"))
    assert poll(detail="waits for a GPU") == [job(1)]
    # The index has written its own row of the job over the row of the poll.
    store.put(of("ada", known(2)))
    rows.from_index()
    assert poll(detail="waits for a GPU") == [job(2)]


class Unconfigured:
    """A service whose configuration names a cluster later."""

    def __init__(self, session: Any) -> None:
        self.details = SimpleNamespace(visible_origin=lambda origin: origin)
        self.found = session

    async def session(self) -> Any:
        return self.found


def test_a_cluster_that_is_configured_later_is_watched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs_module, "RETRY", 0.01)
    before = Session(Profile(backend=None, state_dir=tmp_path / "before", user="ada"))
    later = Session(Profile(backend="local", state_dir=tmp_path / "later", user="ada"))
    before.store.put(known(6, State.SUCCEEDED))
    later.store.put(replace(known(7, State.SUCCEEDED), backend="local"))

    async def test() -> None:
        service = Unconfigured(before)
        watch = jobs_module.JobMonitor(service)  # type: ignore[arg-type]
        watch.start()
        try:
            with watch.keep_polling():
                await asyncio.wait_for(watch.table.wait(0), 20)
                part = watch.table.snapshot()
                assert [row["job_id"] for row in part.rows] == [job(6)]
                service.found = later
                while [row["job_id"] for row in watch.table.snapshot().rows] != [job(7)]:
                    await asyncio.wait_for(watch.table.wait(watch.table.snapshot().revision), 60)
                # What the other index held is gone from pages too.
                told = watch.table.changes_since(part.revision)
                assert told.whole
                assert [row["job_id"] for row in told.rows] == [job(7)]
        finally:
            await watch.close()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left

    asyncio.run(test())


def test_a_job_that_ends_between_polls_is_published_and_one_that_is_found_is_not(
    tmp_path: Path,
) -> None:
    session = Session(Profile(backend="local", state_dir=tmp_path / "state", user="ada"))
    session.store.put(replace(known(1, State.SUCCEEDED), backend="local"))
    told: list[tuple[str, str]] = []

    async def test() -> None:
        service = Unconfigured(session)

        def notify(row: Any) -> None:
            told.append((row["job_id"], row["state"]))

        watch = jobs_module.JobMonitor(service, notify)  # type: ignore[arg-type]
        watch.start()
        try:
            with watch.keep_polling():
                await asyncio.wait_for(watch.table.wait(0), 60)
                session.store.put(replace(known(2, State.FAILED), backend="local"))  # years ago
                late = replace(known(3, State.FAILED), backend="local", created=time.time())
                session.store.put(late)
                while len(watch.table.snapshot().rows) < 3:
                    await asyncio.wait_for(watch.table.wait(watch.table.snapshot().revision), 60)
        finally:
            await watch.close()

    asyncio.run(test())
    assert told == [(job(3), "FAILED")]


def test_the_list_is_there_before_anybody_looks(tmp_path: Path) -> None:
    session = Session(Profile(backend="local", state_dir=tmp_path / "state", user="ada"))
    session.store.put(replace(known(1, State.SUCCEEDED), backend="local"))

    async def test() -> None:
        watch = jobs_module.JobMonitor(Unconfigured(session))  # type: ignore[arg-type]
        watch.start()
        await asyncio.wait_for(watch.table.wait(0), 60)
        assert [row["job_id"] for row in watch.table.snapshot().rows] == [job(1)]
        await watch.close()

    asyncio.run(test())


def test_a_file_system_that_is_away_costs_a_view_its_details_only(tmp_path: Path) -> None:
    session = Session(Profile(backend="local", state_dir=tmp_path / "state", user="ada"))
    session.store.put_origin(job(1), Origin(str(tmp_path / "a.ipynb"), "cell-1"))
    away = True

    def stat(_: str) -> None:
        if away:
            raise StorageError("It is away.")

    def spec() -> JobSpec:
        if away:
            raise StorageError("It is away.")
        return JobSpec("j", "local", notebook=str(tmp_path / "a.ipynb"), cell_id="cell-1")

    storage = SimpleNamespace(stat=stat)
    directory = SimpleNamespace(storage=storage, path="/jobs/j", spec=spec, file=lambda name: name)
    handle: Any = SimpleNamespace(id=job(1), session=session, directory=directory)
    details = JobDetailsCache(tmp_path)
    record = bare_record(known(1))
    about = details.get(handle, record)
    assert (about.origin, about.command, about.mine) == (Origin("a.ipynb", "cell-1"), "", False)
    with pytest.raises(StorageError):
        require_owner(handle, record, "cancel it")
    away = False
    details = JobDetailsCache(tmp_path)
    about = details.get(handle, record)
    assert (about.origin, about.mine) == (Origin("a.ipynb", "cell-1"), True)
    assert about.command


def test_a_hint_is_sent_where_its_schema_is_known() -> None:
    class Bus:
        def __init__(self, *schemas: str) -> None:
            self.schemas = schemas
            self.sent: list[dict[str, Any]] = []

        def emit(self, **words: Any) -> None:
            self.sent.append(words)
            raise ValueError("a listener's fault")

    assert event_publisher(None) is None
    for bus, count in ((Bus(), 0), (Bus(SCHEMA), 1)):
        tell = event_publisher(bus)
        assert tell is not None
        tell(row(1))
        assert len(bus.sent) == count


def test_curves_continue_when_the_job_directory_answers_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers: list[Any] = [[1], StorageError("No answer."), TimeoutError(), [2]]

    class Reader:
        def __init__(self, directory: object) -> None:
            pass

        def fresh(self) -> list[Any]:
            answer = answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return list(answer)

    class LocalService:
        async def call_local(self, work: Any, *words: Any) -> Any:
            return work(*words)

        async def call(self, work: Any, timeout: float) -> Any:
            return work()

    states = iter([False, True, True, True])
    found = SimpleNamespace(
        directory=None, index_entry=lambda: SimpleNamespace(final=next(states), created=time.time())
    )
    for name in ("MIN_INTERVAL", "RETRY"):
        monkeypatch.setattr(metrics, name, 0.001)
    monkeypatch.setattr(metrics, "MetricsReader", Reader)
    monkeypatch.setattr(metrics, "_in_order", list)
    readers: Any = metrics.MetricsDisplays(LocalService(), SimpleNamespace())  # type: ignore[arg-type]
    curves = metrics.JobMetrics()

    async def read() -> Any:
        await readers._read(found, curves)
        return await curves.changes_since(None)

    taken = asyncio.run(read())
    assert (taken.rows, taken.ended) == ([1, 2], True)
    answers[:] = [StorageError("No answer.")]
    with pytest.raises(StorageError):  # a page without any row gets the reason
        asyncio.run(
            readers._read(
                SimpleNamespace(directory=None, index_entry=lambda: None), metrics.JobMetrics()
            )
        )
