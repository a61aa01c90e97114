"""The core on the local backend: finding, waiting, watching, fetching, being far from the agent."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from submarine_jobs.access import AgentAddress, JobDirectory
from submarine_jobs.client import Session
from submarine_jobs.errors import JobFailedError, JobNotFoundError, SubmarineError, UsageError
from submarine_jobs.model import JobView, Profile
from submarine_runtime.protocol import State
from tests.submission import Submit, submitting
from tests.waiting import until


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(Profile(backend="local", state_dir=tmp_path / "state"))


@pytest.fixture
def submit(session: Session) -> Iterator[Submit]:
    with submitting(session) as made:
        yield made


def test_found_by_id_beginning_name_and_last(session: Session, submit: Submit) -> None:
    first, second = submit("print(1)", "alpha"), submit("print(2)", "beta")
    for text, job in (
        (first.id, first),
        (first.id[:-2], first),
        ("alpha", first),
        ("beta", second),
        ("last", second),
    ):
        assert session.job(text).id == job.id
    third = submit("print(3)", "alpha")
    with pytest.raises(UsageError, match="several"):
        session.job("alpha-")
    assert session.job("alpha").id == third.id
    for text in ("gamma", "x-20260101-0000", "../../etc", ""):
        with pytest.raises((JobNotFoundError, UsageError)):
            session.job(text)
    for job in (first, second, third):
        job.wait_success(60)
    listed = [record.job_id for record in session.jobs()]
    assert listed == [third.id, second.id, first.id]


def test_another_machine_finds_what_the_job_root_holds(session: Session, submit: Submit) -> None:
    job = submit("print('there')", "wanderer")
    job.wait_success(60)
    _, root = session.backend().job_root()
    other = Session(replace(session.profile, state_dir=Path(root).parent / "o", job_root=root))
    assert [record.state for record in other.jobs()] == [State.SUCCEEDED]
    assert other.job("wanderer").log().data == b"there\n"


def test_waiting_has_a_limit_and_failure_is_raised(submit: Submit) -> None:
    job = submit("import time; time.sleep(30)")
    with pytest.raises(TimeoutError, match=job.id):
        job.wait(0.5)
    assert job.cancel("enough").state is State.CANCELLED
    with pytest.raises(JobFailedError, match="CANCELLED"):
        job.wait_success(30)


def test_every_subscriber_hears_the_end_once(
    session: Session, submit: Submit, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    job = submit(
        "print('a')\nimport os, time\n"
        f"while not os.path.exists({str(go)!r}): time.sleep(0.05)\nprint('b')"
    )
    heard: list[list[JobView]] = [[], []]
    ended = [threading.Event(), threading.Event()]

    def listener(number: int) -> Callable[[JobView], None]:
        def hear(view: JobView) -> None:
            heard[number].append(view)
            if all(any(view.source == "live" for view in views) for views in heard):
                go.touch()
            if view.record.state.ended:
                ended[number].set()

        return hear

    for number in range(2):
        session.watcher.subscribe(job, listener(number))
    broken = session.watcher.subscribe(job.id, lambda view: [][0])
    assert all(event.wait(60) for event in ended)
    broken()
    time.sleep(1)
    for views in heard:
        ends = [view for view in views if view.record.state.ended]
        assert len(ends) == 1
        assert ends[0].tail == "a\nb\n"
        assert len(views) < 20, "a display is called a few times, not for each line"
        assert any(view.source == "live" for view in views)
    late: list[JobView] = []
    session.watcher.subscribe(job, late.append)
    until(lambda: late)
    assert late[-1].record.state is State.SUCCEEDED


def test_out_of_the_agents_reach_the_shipped_log_serves(
    session: Session, submit: Submit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A laptop that a firewall keeps from the nodes: what was shipped is shown, with its age."""
    here = JobDirectory.address

    def elsewhere(directory: JobDirectory) -> AgentAddress | None:
        found = here(directory)
        return replace(found, port=1) if found else None

    monkeypatch.setattr(JobDirectory, "address", elsewhere)
    job = submit("import time\nfor i in range(3000):\n    print(i)\n    time.sleep(0.1)\n")
    views: list[JobView] = []
    session.watcher.subscribe(job, views.append)
    until(lambda: views and views[-1].tail.count("\n") > 1)
    view = views[-1]
    assert view.source == "shipped"
    assert view.tail.startswith("0\n1\n")
    assert view.record.behind is not None
    assert view.record.behind < 90
    assert job.log("stdout", 0, 2).data == b"0\n"
    assert job.cancel().state is State.CANCELLED


def test_models_are_listed_and_fetched(submit: Submit, tmp_path: Path) -> None:
    source = (
        "import os\n"
        "folder = os.path.join(os.environ['SUBMARINE_MODEL_DIR'], 'v1')\n"
        "os.makedirs(folder)\n"
        "open(os.path.join(folder, 'weights.bin'), 'wb').write(bytes(1000))\n"
    )
    job = submit(source)
    job.wait_success(60)
    assert job.outputs() == [("model/v1/weights.bin", 1000)]
    job.download(tmp_path / "here")
    assert (tmp_path / "here" / "v1" / "weights.bin").stat().st_size == 1000


def test_values_come_back_and_what_cannot_says_why(submit: Submit) -> None:
    job = submit("acc, bad = 0.5, object()\n", return_names=("acc", "bad"))
    job.wait(60)
    assert job.result["acc"] == 0.5
    with pytest.raises(SubmarineError, match="bad"):
        job.result["bad"]
    plain = submit("print(1)\n")
    plain.wait_success(60)
    with pytest.raises(SubmarineError, match="--return"):
        plain.result["acc"]


def test_a_name_with_markup_stays_text(submit: Submit) -> None:
    job = submit("print(1)\n", "<script>alert(1)</script>")
    assert job.wait_success(60).name == "<script>alert(1)</script>"
    assert os.sep not in job.id
    assert job.id.startswith("script-alert-1-script-")
