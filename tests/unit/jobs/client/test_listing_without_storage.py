"""The list of jobs while the job root's file system does not answer, or only to some calls."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from submarine_jobs.backends import Handle, Observation, Stage
from submarine_jobs.backends.local import LocalBackend
from submarine_jobs.client import Session, cancelling, listing, views as viewing
from submarine_jobs.errors import ClusterError, NoAnswerError
from submarine_jobs.model import InvalidRecordError, Profile
from submarine_jobs.storage import HdfsStorage, LocalStorage
from submarine_jobs.tracking import IndexEntry
from submarine_runtime.protocol import EndReason, JobRecord, State, layout, to_json

WAITS, RUNS, ENDED, OVER = (f"digits-20261122-000{number}" for number in range(4))


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Session:
    """Four jobs, and a backend that knows of three of them."""
    made = Session(Profile(backend="local", state_dir=tmp_path))
    observed = {
        WAITS: Observation(Stage.WAITING, pending="the queue is full"),
        RUNS: Observation(Stage.RUNNING),
        ENDED: Observation(Stage.ENDED, EndReason.SUCCEEDED, finished=9.0),
    }

    def observe(self: LocalBackend, handles: Mapping[str, Handle]) -> dict[str, Observation]:
        return {job_id: observed[job_id] for job_id in handles}

    monkeypatch.setattr(LocalBackend, "observe", observe)
    _, root = made.backend().job_root()
    for job_id in (OVER, ENDED, RUNS, WAITS):
        place = f"file://{root}/202611/{job_id}"
        first = State.SUBMITTING if job_id == WAITS else State.RUNNING
        row = IndexEntry(job_id, "digits", "local", "default", place, 5.0, first, {"pid": 1})
        if job_id == OVER:
            record = JobRecord(job_id, "digits", State.FAILED, reason=EndReason.PROGRAM_ERROR)
            row = replace(row, state=State.FAILED, record=record)
        made.store.put(row)
    return made


@pytest.fixture
def hanging(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """No call to the file system returns; what was asked of it."""
    asked: list[str] = []
    over = threading.Event()

    def hang(self: LocalStorage, path: str, *_: Any) -> Any:
        asked.append(path)
        over.wait(60)
        raise FileNotFoundError(path)

    for name in ("PATIENCE", "SEARCH_PATIENCE"):
        monkeypatch.setattr(listing, name, 0.2)
    for name in ("list_directory", "read", "stat"):
        monkeypatch.setattr(LocalStorage, name, hang)
    yield asked
    over.set()


@pytest.mark.slow
def test_what_the_cluster_and_this_machine_know_is_listed(
    session: Session, hanging: list[str]
) -> None:
    troubles: list[ClusterError] = []
    records = {record.job_id: record for record in session.jobs(10, troubles.append)}
    assert {job_id: record.state for job_id, record in records.items()} == {
        WAITS: State.PENDING,
        RUNS: State.RUNNING,
        ENDED: State.SUCCEEDED,
        OVER: State.FAILED,
    }
    assert records[WAITS].pending == "the queue is full"
    assert [job_id for job_id, record in records.items() if record.last_known] == [ENDED]
    assert "cannot be read: no answer within 0.2 s" in records[ENDED].detail
    assert [type(trouble) for trouble in troubles] == [NoAnswerError]
    assert len(hanging) == 1, "one call is enough to know"
    row = session.store.get(ENDED)
    assert row is not None
    assert not row.final, "what the job itself says is still asked for"


@pytest.mark.slow
def test_a_job_that_cannot_be_looked_for_is_not_said_to_be_missing(
    session: Session, hanging: list[str]
) -> None:
    with pytest.raises(NoAnswerError):
        session.job("another")


def test_a_file_system_that_falls_silent_later_is_asked_once(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def read(self: LocalStorage, path: str, *_: Any) -> bytes:
        asked.append(path)
        raise NoAnswerError("HDFS did not answer in time.")

    monkeypatch.setattr(LocalStorage, "read", read)
    monkeypatch.setattr(
        LocalBackend,
        "observe",
        lambda self, handles: {
            job_id: Observation(Stage.ENDED, EndReason.SUCCEEDED) for job_id in handles
        },
    )
    records = session.jobs(10)
    assert [record.last_known for record in records].count(True) == 3
    assert len(asked) == 1


@pytest.fixture
def silent(session: Session, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    """The same jobs on an HDFS whose port accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        storage = HdfsStorage(f"hdfs://127.0.0.1:{listener.getsockname()[1]}", timeout=20.0)
        backend: Any = session.backend()
        monkeypatch.setattr(backend, "job_root", lambda: (storage, "/jobs"))
        for row in session.store.newest():
            place = f"{storage.prefix}/jobs/202611/{row.job_id}"
            session.store.put(replace(row, job_dir=place))
        yield session


@pytest.mark.slow
@pytest.mark.parametrize(
    ("job_id", "state"),
    [(WAITS, State.PENDING), (RUNS, State.RUNNING), (ENDED, State.SUCCEEDED), (OVER, State.FAILED)],
)
def test_job_is_shown_within_five_seconds(
    silent: Session, job_id: str, state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    if job_id != RUNS:  # The default limit is waited for once.
        monkeypatch.setattr(viewing, "STORAGE_SECONDS", 0.3)
    before = time.monotonic()
    view = silent.job(job_id).view()
    assert time.monotonic() - before < 5.0
    assert view.record.state is state
    if job_id != WAITS:  # of which the cluster says everything
        assert "cannot be read now: HDFS at hdfs://" in view.record.missing[0]


@pytest.mark.slow
def test_cancel_without_the_file_system_ends_the_job_on_the_cluster(
    silent: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped: list[Handle] = []
    ended = Observation(Stage.ENDED, EndReason.CANCELLED, "Cancelled by ann.")
    backend = silent.backend()
    observe = backend.observe

    def look(handles: Mapping[str, Handle]) -> dict[str, Observation]:
        return dict.fromkeys(handles, ended) if stopped else dict(observe(handles))

    monkeypatch.setattr(cancelling, "STORAGE_SECONDS", 0.3)
    monkeypatch.setattr(viewing, "STORAGE_SECONDS", 0.3)
    monkeypatch.setattr(backend, "stop", stopped.append)
    monkeypatch.setattr(backend, "observe", look)
    record = silent.job(RUNS).cancel("not needed")
    assert stopped == [{"pid": 1}]
    assert record.state is State.CANCELLED
    assert "was ended through local, without saving" in record.missing[0]


@pytest.mark.slow
def test_cancel_that_reaches_nothing_says_so(
    silent: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Handle) -> None:
        raise ClusterError("The ResourceManager does not answer.")

    monkeypatch.setattr(cancelling, "STORAGE_SECONDS", 0.3)
    monkeypatch.setattr(viewing, "STORAGE_SECONDS", 0.3)
    monkeypatch.setattr(silent.backend(), "stop", refuse)
    monkeypatch.setattr(silent.backend(), "find", lambda _: None)
    row = silent.store.get(WAITS)
    assert row is not None
    with pytest.raises(ClusterError, match=r"was not cancelled: HDFS .*ResourceManager does not"):
        silent.job(WAITS).cancel()
    silent.store.put(replace(row, handle=None))
    with pytest.raises(ClusterError, match="was not cancelled: HDFS at"):
        silent.job(WAITS).cancel()


def test_an_invalid_record_is_reported_and_other_jobs_are_listed(session: Session) -> None:
    storage, root = session.backend().job_root()
    day = time.strftime("%Y%m%d", time.gmtime())
    damaged, other = f"digits-{day}-0008", f"digits-{day}-0009"
    for job_id in (damaged, other):
        record = to_json(JobRecord(job_id, "digits", State.SUCCEEDED, user="ada"))
        record["tasks"] = [{"index": "<b>"}] if job_id == damaged else []
        directory = layout.job_directory(root, job_id)
        storage.make_directory(directory)
        storage.publish(f"{directory}/{layout.RECORD}", json.dumps(record).encode())
    troubles: list[ClusterError] = []
    listed = [record.job_id for record in session.jobs(10, troubles.append)]
    assert other in listed
    assert damaged not in listed
    assert any(f"The record of {damaged} is invalid" in str(error) for error in troubles)
    with pytest.raises(InvalidRecordError, match=damaged):
        session.job(damaged)
