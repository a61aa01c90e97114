"""Detection of a lost container by the state of its job and by the connection."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import cast

import pytest

from submarine_jobs.access import AgentAddress, Tunnel, TunnelError, create_secret
from submarine_jobs.client import Job
from submarine_jobs.errors import ClusterError
from submarine_jobs.model import JobView
from submarine_kernel.remote import KernelLostError
from submarine_kernel.remote.remote_kernel import loss_reason
from submarine_kernel.remote.supervisor_client import SupervisorClient
from submarine_minicluster.machine import free_port
from submarine_runtime.protocol import EndReason, JobRecord, State, TaskRecord

GONE = "The container of the kernel is gone."


class FakeJob:
    """Fake job with one view; records its cancellation."""

    id = "kernel-gpu-1"

    def __init__(self, record: JobRecord | None) -> None:
        self._record = record
        self.cancelled = ""

    def view(self) -> JobView:
        if self._record is None:
            raise ClusterError("no answer")
        return JobView(self._record)

    def cancel(self, reason: str) -> None:
        self.cancelled = reason


def record(state: State, *tasks: TaskRecord, reason: EndReason | None = None) -> JobRecord:
    return JobRecord("kernel-gpu-1", "kernel-gpu", state, reason=reason, tasks=list(tasks))


@pytest.mark.parametrize(
    "shown",
    [None, record(State.RUNNING, TaskRecord("worker:0", "worker", 0)), record(State.PENDING)],
)
def test_an_unreachable_or_running_job_is_not_lost(shown: JobRecord | None) -> None:
    job = FakeJob(shown)
    assert loss_reason(cast(Job, job)) == ""
    assert not job.cancelled


def test_an_ended_job_has_the_reason() -> None:
    job = FakeJob(record(State.FAILED, reason=EndReason.NODE_LOST))
    words = loss_reason(cast(Job, job))
    assert words.startswith(GONE)
    assert "node" in words
    assert not job.cancelled


@pytest.mark.parametrize("detail", ["Its node was lost.", ""])
def test_a_job_with_a_replaced_container_is_cancelled(detail: str) -> None:
    """Otherwise the kernel would wait forever, or restart without its variables."""
    task = TaskRecord("worker:0", "worker", 0, restarts=1, detail=detail)
    job = FakeJob(record(State.RUNNING, task))
    assert loss_reason(cast(Job, job)) == f"{GONE} {detail}".strip()
    assert job.cancelled


class Transport:
    """Fake connection to the supervisor that discards what is written."""

    def is_closing(self) -> bool:
        return False

    def write(self, data: bytes) -> None:
        del data


def test_a_connection_that_ends_ends_the_wait_for_an_answer() -> None:
    """Otherwise the loss of the container is detected only after the time limit of 15 s."""

    async def ask() -> None:
        supervisor = SupervisorClient("kernel-gpu-1", lambda message: None)
        supervisor._tunnel = cast(Tunnel, SimpleNamespace(transport=Transport()))
        asking = asyncio.ensure_future(supervisor.request({"type": "hello"}, "hello", 600.0))
        await asyncio.sleep(0)
        supervisor.broken.set()
        with pytest.raises(KernelLostError, match="ended before it answered"):
            await asyncio.wait_for(asking, 60)

    asyncio.run(ask())


def test_a_refused_connection_counts_as_ended() -> None:
    """Otherwise the owner waits 12 s for a message on a connection that was never open."""

    async def connect() -> bool:
        supervisor = SupervisorClient("kernel-gpu-1", lambda message: None)
        secret = create_secret("kernel-gpu-1")
        with pytest.raises(TunnelError, match="Connect call failed"):
            await supervisor.connect(AgentAddress("127.0.0.1", free_port(), secret))
        return supervisor.broken.is_set()

    assert asyncio.run(connect())
