"""When the container of a kernel counts as gone, by what its job says."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import cast

import pytest

from submarine_jobs.access import AgentAddress, Tunnel, TunnelError, new_secret
from submarine_jobs.client import Job
from submarine_jobs.errors import ClusterError
from submarine_jobs.model import JobView
from submarine_kernel.remote.keeper_client import KeeperClient, KernelGoneError
from submarine_kernel.remote.remote_kernel import loss_reason
from submarine_minicluster.machine.ports import free_port
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
    assert loss_reason(cast(Job, job)) == ""
    assert not job.cancelled


def test_a_job_that_has_ended_says_why() -> None:
    job = FakeJob(record(State.FAILED, reason=EndReason.NODE_LOST))
    words = loss_reason(cast(Job, job))
    assert words.startswith(GONE)
    assert "node" in words
    assert not job.cancelled


@pytest.mark.parametrize("detail", ["Its node was lost.", ""])
def test_a_container_that_was_replaced_has_another_kernel_and_is_let_go(detail: str) -> None:
    """Else a kernel whose node is lost would wait for ever, or come back empty."""
    task = TaskRecord("worker:0", "worker", 0, restarts=1, detail=detail)
    job = FakeJob(record(State.RUNNING, task))
    assert loss_reason(cast(Job, job)) == f"{GONE} {detail}".strip()
    assert job.cancelled


class Transport:
    """A connection to the keeper that takes what is written."""

    def is_closing(self) -> bool:
        return False

    def write(self, data: bytes) -> None:
        del data


def test_a_connection_that_ends_ends_the_wait_for_an_answer() -> None:
    """The wait lasted 15 s, in which nothing looked whether the container is gone."""

    async def ask() -> None:
        keeper = KeeperClient("kernel-gpu-1", lambda said: None)
        keeper._tunnel = cast(Tunnel, SimpleNamespace(transport=Transport()))
        asking = asyncio.ensure_future(keeper.request({"type": "hello"}, "hello", 600.0))
        await asyncio.sleep(0)
        keeper.broken.set()
        with pytest.raises(KernelGoneError, match="ended before it answered"):
            await asyncio.wait_for(asking, 60)

    asyncio.run(ask())


def test_a_connection_that_is_refused_counts_as_ended() -> None:
    """The owner waited 12 s for a sign of life on a connection that was never made."""

    async def connect() -> bool:
        keeper = KeeperClient("kernel-gpu-1", lambda said: None)
        secret = new_secret("kernel-gpu-1")
        with pytest.raises(TunnelError, match="Connect call failed"):
            await keeper.connect(AgentAddress("127.0.0.1", free_port(), secret))
        return keeper.broken.is_set()

    assert asyncio.run(connect())
