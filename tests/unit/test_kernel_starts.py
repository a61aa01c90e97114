"""A start that waits for a container ends with its server, and so does its job."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from submarine_kernel.remote import placing
from submarine_kernel.remote.conversation import KernelGoneError
from submarine_kernel.remote.starts import end_starts, over, waiting


class Job:
    """One whose container never comes."""

    id = "kernel-x-1"

    def __init__(self) -> None:
        self.cancelled: list[str] = []
        self.directory = SimpleNamespace(
            spec=lambda: SimpleNamespace(distributed=False, backend="yarn"), address=lambda: None
        )

    def cancel(self, why: str) -> None:
        self.cancelled.append(why)


def test_starts_end_before_their_server_does() -> None:
    job: Any = Job()

    async def start() -> None:
        with waiting():
            await placing.place(job, 600.0, lambda words: None)

    async def serve() -> None:
        started = asyncio.ensure_future(start())
        await asyncio.sleep(0)
        assert await end_starts(60.0)
        # At once, since the server asks for its kernels next.
        assert started.done()
        with pytest.raises(KernelGoneError, match="server was stopped"):
            await started

    asyncio.run(serve())
    assert job.cancelled == ["its server was stopped"]
    assert not over()


def test_nobody_waits_where_nothing_is_started() -> None:
    assert asyncio.run(end_starts(0.0))
