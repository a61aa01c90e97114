"""The end of a log that a display shows, and the interval of the views of a job."""

from __future__ import annotations

import asyncio
import base64
from types import SimpleNamespace
from typing import Any, cast

import pytest

from submarine_jobs.client import Watcher
from submarine_jobs.client.watcher import WatchedJob
from submarine_jobs.model import JobView
from submarine_runtime.protocol import JobRecord, State, TaskRecord


def log_line(offset: int, data: bytes) -> dict[str, Any]:
    place = {"task": "worker:0", "attempt": "e1-a1", "stream": "stdout", "offset": offset}
    return {"type": "log", **place, "data": base64.b64encode(data).decode()}


def test_the_stream_replaces_the_shipped_log() -> None:
    record = JobRecord(
        "j-20261121-0a1b", "j", State.RUNNING, tasks=[TaskRecord("worker:0", "worker", 0)]
    )
    job = cast("Any", SimpleNamespace(task_names=["worker:0"], chief="worker:0"))
    watched = WatchedJob(job, record)
    watched.start_at_tail(record)
    assert watched.handle_line(log_line(0, b"a\n"))
    assert watched.handle_line(log_line(2, b"b\n"))
    watched.show_shipped("a\nb\nc\n")
    assert watched.tail.text() == "a\nb\nc\n"
    watched.start_at_tail(record)
    assert watched.handle_line(log_line(0, b"a\nb\nc\n"))
    assert watched.handle_line(log_line(6, b"d\n"))
    assert watched.tail.text() == "a\nb\nc\nd\n"


@pytest.mark.slow
def test_the_newest_view_is_reported_after_the_interval_and_the_end_at_once() -> None:
    watcher = Watcher(cast("Any", None), interval=0.5)
    seen: list[tuple[float, State]] = []

    async def publish() -> None:
        now = asyncio.get_running_loop().time
        record = JobRecord("j", "j", State.RUNNING)
        watched: Any = SimpleNamespace(
            job=SimpleNamespace(id="j"),
            published=now(),
            dirty=False,
            view=lambda: JobView(record),
            callbacks={0: lambda view: seen.append((now(), view.record.state))},
        )
        began = watched.published
        for state in (State.RUNNING, State.FINISHING, State.RESTARTING):
            record.state = state
            watcher._publish(watched)
        assert not seen
        while not seen and now() < began + 60:
            await asyncio.sleep(0.05)
        assert seen[0][0] - began >= 0.5
        record.state = State.SUCCEEDED
        watcher._publish(watched, at_once=True)

    asyncio.run(publish())
    assert [state for _, state in seen] == [State.RESTARTING, State.SUCCEEDED]
