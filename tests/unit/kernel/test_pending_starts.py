"""A pending start ends with its server, and its job is cancelled."""

from __future__ import annotations

import asyncio
import io
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from submarine_kernel.remote import (
    KernelLostError,
    PendingStart,
    StartProgress,
    end_starts,
    list_pending,
    submission,
)
from submarine_kernel.remote.pending_starts import pending, stopping


class Job:
    """Fake job whose container does not start."""

    id = "kernel-x-1"

    def __init__(self) -> None:
        self.cancelled: list[str] = []
        self.directory = SimpleNamespace(
            spec=lambda: SimpleNamespace(distributed=False, backend="yarn"), address=lambda: None
        )

    def cancel(self, why: str) -> None:
        self.cancelled.append(why)


def test_starts_end_before_their_server() -> None:
    job: Any = Job()

    async def start() -> None:
        with pending(PendingStart("gpu4", "a.ipynb")):
            await submission.wait_for_container(job, 600.0, lambda words: None)

    async def serve() -> None:
        started = asyncio.ensure_future(start())
        await asyncio.sleep(0)
        assert [(start.kernel, start.notebook) for start in list_pending()] == [("gpu4", "a.ipynb")]
        assert await end_starts(60.0)
        assert list_pending() == []
        # The server lists its kernels next.
        assert started.done()
        with pytest.raises(KernelLostError, match="server was stopped"):
            await started

    asyncio.run(serve())
    assert job.cancelled == ["its server was stopped"]
    assert not stopping()


def test_one_start_is_stopped_and_its_job_cancelled() -> None:
    job: Any = Job()
    stop: list[bool] = []

    async def start() -> None:
        asyncio.get_running_loop().call_later(0.05, stop.append, True)
        await submission.wait_for_container(job, 600.0, lambda words: None, lambda: bool(stop))

    with pytest.raises(KernelLostError, match="The start was stopped, and its job kernel-x-1 is"):
        asyncio.run(start())
    assert job.cancelled == ["its start was stopped"]


def test_without_starts_nothing_is_waited_for() -> None:
    assert asyncio.run(end_starts(0.0))


class Terminal(io.StringIO):
    """Stderr of a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("terminal", [True, False])
def test_a_start_shows_its_reason_to_wait_in_a_terminal(
    monkeypatch: pytest.MonkeyPatch, terminal: bool
) -> None:
    monkeypatch.setattr(sys, "stderr", screen := Terminal())
    monkeypatch.setenv("TERM", "xterm")
    lines: list[str] = []
    # A server uses its terminal as its log.
    progress = StartProgress(start := PendingStart("gpu4"), lines.append, terminal=terminal)
    assert not progress.show_progress("Packing this environment: 34 % of 700 MB")
    assert start.status == "Packing this environment: 34 % of 700 MB"
    progress.report_wait("queue gpu has 0 of 4 GPUs free")
    progress.show_progress("Uploading")
    progress.close()
    assert lines == ["The kernel gpu4 waits: queue gpu has 0 of 4 GPUs free"]
    shown = screen.getvalue()
    assert ("34 %" in shown) is ("\n" in shown) is terminal
    assert not terminal or shown.endswith("Uploading\r\x1b[K")
