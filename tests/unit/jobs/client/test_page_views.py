"""A displayed job while a page of the Jupyter server shows it: nothing is polled for display."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from submarine_jobs.backends import Observation, Stage
from submarine_jobs.client import Watcher, watcher as watcher_module
from submarine_jobs.model import JobView
from submarine_jobs.tracking import IndexEntry, JobStore, PageView, Target
from submarine_runtime.protocol import JobRecord, State
from tests.unit.jobs.access.fake_port import JOB_ID, FollowedJob, Port, log_line
from tests.unit.jobs.logs.test_following import ROLES
from tests.waiting import until

RUNNING = JobRecord(JOB_ID, "gang", State.RUNNING, progress=0.25)


class Kernel:
    """A kernel that displays one job, and what its watcher requests from the cluster."""

    def __init__(self, root: Path, stage: Stage = Stage.WAITING) -> None:
        self.stage = stage
        self.polls = 0
        self.views: list[JobView] = []
        self.port = Port(root, [])
        self.job = FollowedJob(root / "job", self.port, ROLES)
        self.store = JobStore(root / "index.sqlite")
        entry = IndexEntry(JOB_ID, "gang", "local", "", "file:///job", 1.0, State.PENDING)
        self.store.put(replace(entry, handle={"application_id": "a"}))
        deliveries = SimpleNamespace(keep=lambda *_: None)
        session: Any = SimpleNamespace(
            store=self.store,
            profile=SimpleNamespace(state_dir=root),
            token_deliveries=deliveries,
        )
        self.job.session = session
        self.watcher = Watcher(session, self._observe)
        self.page = PageView(root, JOB_ID)

    def _observe(self, targets: Iterable[Target]) -> Mapping[str, Observation]:
        self.polls += 1
        return {target.entry.job_id: Observation(self.stage) for target in targets}

    def display(self, **words: Any) -> Callable[[], None]:
        return self.watcher.subscribe(self.job, self.views.append, **words)

    def is_quiet(self) -> bool:
        """Whether nothing is requested for a while."""
        before = (self.polls, len(self.port.asked))
        time.sleep(0.5)
        return (self.polls, len(self.port.asked)) == before


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Kernel]]:
    monkeypatch.setattr(watcher_module, "PAGE_INTERVAL", 0.05)
    monkeypatch.setattr(watcher_module, "FIRST_POLL", 0.05)
    made: list[Kernel] = []

    def make(stage: Stage = Stage.WAITING) -> Kernel:
        made.append(Kernel(tmp_path, stage))
        return made[-1]

    yield make
    for one in made:
        one.port.close()


@pytest.mark.slow
def test_a_job_that_no_page_shows_is_polled(kernel: Callable[..., Kernel]) -> None:
    one = kernel()
    stop = one.display(display=True)
    until(lambda: one.polls > 2)
    stop()


@pytest.mark.slow
def test_the_view_of_the_server_replaces_polls_until_the_page_is_closed(
    kernel: Callable[..., Kernel],
) -> None:
    one = kernel()
    one.page.publish(JobView(RUNNING, "text of the server", "waits", "live"))
    stop = one.display(display=True)
    until(lambda: one.views and one.views[-1].record.progress == 0.25)
    # The end of the log would not be updated.
    assert one.views[-1].tail == ""
    until(one.is_quiet)
    one.page.publish(JobView(replace(RUNNING, progress=0.5), "", "", "live"))
    until(lambda: one.views[-1].record.progress == 0.5)
    assert one.is_quiet()
    one.page.remove()
    until(lambda: not one.is_quiet())
    stop()


@pytest.mark.slow
def test_a_server_that_has_stopped_is_noticed(
    kernel: Callable[..., Kernel], tmp_path: Path
) -> None:
    one = kernel()
    one.page.publish(JobView(RUNNING))
    stop = one.display(display=True)
    until(one.is_quiet)
    old = time.time() - 60
    os.utime(tmp_path / "pages" / f"{JOB_ID}.json", (old, old))
    until(lambda: not one.is_quiet())
    stop()


@pytest.mark.slow
def test_a_stream_for_display_is_closed_and_opened_again(kernel: Callable[..., Kernel]) -> None:
    one = kernel(Stage.RUNNING)
    one.port.scripts = [[log_line("worker:0", "e1-a1", 0, b"x\n")]] * 1000
    stop = one.display(display=True)
    until(lambda: one.port.asked)
    one.page.publish(JobView(RUNNING))
    until(one.is_quiet)
    one.page.remove()
    until(lambda: not one.is_quiet())
    stop()


@pytest.mark.slow
def test_waiting_for_the_end_is_not_left_to_the_server(kernel: Callable[..., Kernel]) -> None:
    one = kernel()
    one.page.publish(JobView(RUNNING))
    shown = one.display(display=True)
    until(one.is_quiet)
    waits = one.watcher.subscribe(one.job, lambda _: None)
    until(lambda: not one.is_quiet())
    assert not one.is_quiet()
    waits()
    until(one.is_quiet)
    shown()


@pytest.mark.slow
def test_the_end_comes_from_the_index(kernel: Callable[..., Kernel]) -> None:
    """The server stores the final record there."""
    one = kernel()
    one.page.publish(JobView(RUNNING))
    one.display(display=True)
    one.job.ship("worker:0", (1, 1), b"last words\n")
    until(lambda: one.views and one.views[-1].record.progress == 0.25)
    until(one.is_quiet)
    polls = one.polls
    entry = one.store.get(JOB_ID)
    assert entry is not None
    logs = {"worker:0/e1-a1/stdout": 11}
    record = replace(RUNNING, state=State.SUCCEEDED, logs=logs)
    one.store.put(replace(entry, state=State.SUCCEEDED, record=record))
    one.page.remove()
    until(lambda: one.views[-1].record.state is State.SUCCEEDED)
    assert (one.views[-1].source, one.views[-1].tail) == ("final", "last words\n")
    assert one.polls == polls


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"record": {"job_id": 1}}', b"\xff"])
def test_an_invalid_view_is_ignored(tmp_path: Path, content: bytes) -> None:
    page = PageView(tmp_path, JOB_ID)
    assert not page.valid
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / f"{JOB_ID}.json").write_bytes(content)
    assert page.read() is None
