"""Wait for the kernel until the run is stopped.

When the run is stopped, the kernel is interrupted repeatedly. If it does not react, DeadKernelError
is raised, and the caller ends the kernel.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Coroutine
from typing import Any, TypeVar

from nbclient.exceptions import DeadKernelError

from submarine_runtime.translation import _
from submarine_workflows.headless.kernel.client import HeadlessClient

T = TypeVar("T")
#: Seconds for an interrupted cell before its kernel is ended.
CELL_GRACE = 8.0
#: Seconds for the kernel to end its jobs: schedulers send SIGKILL half a minute after SIGTERM.
JOBS_GRACE = 16.0
#: Seconds between interrupts, in case a cell catches one.
_INTERRUPT_INTERVAL = 2.0


class KernelWaiter:
    """Wait for the kernel of one run; handle a stop of the run.

    Parameters
    ----------
    client
        Client of the kernel.
    stop
        Set when the run is to stop.
    immediate
        Set when it is to stop without delay.
    """

    def __init__(
        self, client: HeadlessClient, stop: asyncio.Event, immediate: asyncio.Event
    ) -> None:
        self._client = client
        self._stop = stop
        self._immediate = immediate

    async def interrupt(self) -> None:
        """Interrupt the kernel."""
        assert self._client.km is not None
        await await_optional(self._client.km.interrupt_kernel())

    async def unless_stopped(self, work: Coroutine[Any, Any, T]) -> T | None:
        """Return the result of ``work``, or None if the run is stopped before."""
        task = asyncio.ensure_future(work)
        await _first(task, self._stop)
        if task.done():
            return task.result()
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        return None

    async def interruptible(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of ``work``; interrupt the kernel if the run is stopped.

        Raises
        ------
        DeadKernelError
            If the kernel does not react in time; the caller must end it.
        """
        assert self._client.km is not None
        task = asyncio.ensure_future(work)
        await _first(task, self._stop)
        deadline = asyncio.get_running_loop().time() + CELL_GRACE
        while not task.done():
            left = deadline - asyncio.get_running_loop().time()
            if left <= 0 or self._immediate.is_set():
                await self._abandon(task)
            await self.interrupt()
            await _first(task, self._immediate, timeout=min(_INTERRUPT_INTERVAL, left))
        return task.result()

    async def within_grace_period(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of ``work``, with the time limit of a stopped run."""
        task = asyncio.ensure_future(work)
        await _first(task, self._immediate, timeout=JOBS_GRACE)
        if not task.done():
            await self._abandon(task)
        return task.result()

    async def _abandon(self, task: asyncio.Task[Any]) -> None:
        self._client.shutdown_kernel = "immediate"
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError, DeadKernelError):
            await task
        raise DeadKernelError(_("The kernel did not react to an interrupt."))


async def _first(
    task: asyncio.Task[Any], event: asyncio.Event, timeout: float | None = None
) -> None:
    """Return when ``task`` is done, ``event`` is set, or the timeout has passed."""
    if task.done():
        return
    waiting = asyncio.ensure_future(event.wait())
    try:
        await asyncio.wait({task, waiting}, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()


async def await_optional(result: Awaitable[Any] | None) -> None:
    """Await the result of a kernel manager's method, which may be None."""
    if result is not None:
        await result
