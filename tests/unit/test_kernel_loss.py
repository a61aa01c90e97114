"""When the container of a kernel counts as gone, by what its job says."""

from __future__ import annotations

from typing import cast

import pytest

from submarine_jobs.errors import ClusterError
from submarine_jobs.job import Job
from submarine_jobs.view import JobView
from submarine_kernel.remote.loss import why_gone
from submarine_runtime.protocol.reasons import EndReason
from submarine_runtime.protocol.record import JobRecord, TaskRecord
from submarine_runtime.protocol.states import State

GONE = "The container of the kernel is gone."


class FakeJob:
    """A job that says one thing, and notes that it was cancelled."""

    id = "kernel-gpu-1"

    def __init__(self, record: JobRecord | None) -> None:
        self._record = record
        self.cancelled = ""

    def view(self) -> JobView:
        if self._record is None:
            raise ClusterError("no answer")
        return JobView(self._record)

    def cancel(self, why: str) -> None:
        self.cancelled = why


def record(state: State, *tasks: TaskRecord, reason: EndReason | None = None) -> JobRecord:
    return JobRecord("kernel-gpu-1", "kernel-gpu", state, reason=reason, tasks=list(tasks))


@pytest.mark.parametrize(
    "said",
    [None, record(State.RUNNING, TaskRecord("worker:0", "worker", 0)), record(State.PENDING)],
)
def test_what_cannot_be_reached_is_not_gone(said: JobRecord | None) -> None:
    job = FakeJob(said)
    assert why_gone(cast(Job, job)) == ""
    assert not job.cancelled


def test_a_job_that_has_ended_says_why() -> None:
    job = FakeJob(record(State.FAILED, reason=EndReason.NODE_LOST))
    words = why_gone(cast(Job, job))
    assert words.startswith(GONE)
    assert "node" in words
    assert not job.cancelled


@pytest.mark.parametrize("detail", ["Its node was lost.", ""])
def test_a_container_that_was_replaced_has_another_kernel_and_is_let_go(detail: str) -> None:
    """Else a kernel whose node is lost would wait for ever, or come back empty."""
    task = TaskRecord("worker:0", "worker", 0, restarts=1, detail=detail)
    job = FakeJob(record(State.RUNNING, task))
    assert why_gone(cast(Job, job)) == f"{GONE} {detail}".strip()
    assert job.cancelled
