"""The end of a log that a display shows, first from the job directory and then from the agent."""

from __future__ import annotations

import base64
from types import SimpleNamespace
from typing import Any, cast

from submarine_jobs.client.watcher import WatchedJob
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
