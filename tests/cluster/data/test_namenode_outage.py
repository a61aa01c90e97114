"""What a client sees and can do while the NameNode does not answer: show, logs -f, cancel."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from submarine_jobs.access import LogChunk
from submarine_jobs.client import Job, Session
from submarine_jobs.commands import execute
from submarine_jobs.errors import ClusterError
from submarine_jobs.model import Profile
from submarine_minicluster.cluster import Minicluster
from submarine_runtime.protocol import EndReason, State
from tests.cluster.conftest import Shell
from tests.submission import Submit
from tests.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.full]

#: Longer than one call of the storage may take below, and than the pause between looks.
AWAY = 30.0
LINES = 60
COUNTS = f"""\
import time
for number in range({LINES}):
    print(number, flush=True)
    time.sleep(1)
"""
HELD = """\
import os, time
print("up", flush=True)
while not os.path.exists({go!r}): time.sleep(0.1)
"""


@pytest.fixture(params=["stopped", "killed"])
def outage(
    request: pytest.FixtureRequest, minicluster: Minicluster
) -> Iterator[tuple[Callable[[], None], Callable[[], None]]]:
    """Functions that take the NameNode away and bring it back."""

    def begin() -> None:
        minicluster.kill(
            "namenode", signal.SIGSTOP if request.param == "stopped" else signal.SIGKILL
        )

    def end() -> None:
        if request.param == "stopped":
            minicluster.kill("namenode", signal.SIGCONT)
        else:
            minicluster.restart("namenode")

    yield begin, end
    if request.param == "stopped":
        minicluster.kill("namenode", signal.SIGCONT)
    minicluster.start()


Outage = tuple[Callable[[], None], Callable[[], None]]


def running(job: Job) -> None:
    until(lambda: b"up" in job.log().data or b"0" in job.log().data)
    until(lambda: job.record().state is State.RUNNING)


def test_log_continues_after_an_outage(
    submit: Submit, yarn_profile: Profile, outage: Outage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what was shipped alone, so that every line comes through HDFS."""
    begin, end = outage
    job = submit(COUNTS)
    running(job)
    follower = Session(replace(yarn_profile, timeout=5.0)).job(job.id)
    monkeypatch.setattr(follower, "agent", lambda: None)
    chunks: list[LogChunk] = []

    def follow() -> None:
        chunks.extend(follower.follow(tasks="*"))

    thread = threading.Thread(target=follow)
    thread.start()
    begin()
    time.sleep(AWAY)
    end()
    thread.join(300)
    assert not thread.is_alive()
    text = b"".join(chunk.data for chunk in chunks if chunk.stream == "stdout")
    assert text.split() == [b"%d" % number for number in range(LINES)]
    (note,) = [chunk.note for chunk in chunks if chunk.note]
    assert "the log could not be read" in note
    assert "it continues here" in note


def test_show_answers_within_five_seconds(
    submit: Submit, shell: Shell, tmp_path: Path, outage: Outage
) -> None:
    begin, end = outage
    go = tmp_path / "go"
    goes_on, ended = submit(HELD.format(go=str(go))), submit("print('up')\n")
    running(goes_on)
    assert ended.wait(120).state is State.SUCCEEDED
    begin()
    try:
        for job, state in ((goes_on, State.RUNNING), (ended, State.SUCCEEDED)):
            for words in (["show", job.id], ["show", job.id, "--tasks"]):
                before = time.monotonic()
                shown = execute(words, shell)
                assert time.monotonic() - before < 5.0
                assert state.value in shown.text
                if "--tasks" not in words:
                    assert "cannot be read now" in " ".join(shown.text.split())
    finally:
        end()
        go.touch()
    assert goes_on.wait(180).state is State.SUCCEEDED


@pytest.mark.parametrize("way", ["port", "cluster"])
def test_cancel_during_an_outage_ends_the_job(
    submit: Submit, session: Session, shell: Shell, outage: Outage, tmp_path: Path, way: str
) -> None:
    begin, end = outage
    job = submit(HELD.format(go=str(tmp_path / "never")))
    running(job)
    assert job.agent() is not None
    begin()
    try:
        if way == "port":  # this process knows the address
            record = job.cancel("not needed")
            assert "The agent is stopping its program" in record.missing[0]
        else:
            text = execute(["cancel", job.id, "--yes"], shell).text
            assert "was ended through yarn" in text
            assert job.backend.observe({job.id: job.handle or {}})[job.id].active is False
    finally:
        end()

    def closed() -> bool:
        try:
            return job.directory.record() is not None or job.record().state.ended
        except ClusterError:
            return False

    until(closed)
    until(lambda: job.directory.record() is not None)
    last = job.directory.record()
    assert last is not None
    assert (last.state, last.reason) == (State.CANCELLED, EndReason.CANCELLED)
