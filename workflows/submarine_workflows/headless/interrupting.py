"""Work of a kernel that a run waits for only as long as the run goes on.

Once the run is to end, the kernel is interrupted, again and again, and dropped where it does not
let go. Does not decide when a run ends, and ends no kernel: what is raised here says that one must.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Coroutine
from typing import Any, TypeVar

from nbclient.exceptions import DeadKernelError

from submarine_workflows.headless.client import HeadlessClient

T = TypeVar("T")
#: Seconds that an interrupted cell has before its kernel is ended.
CELL_GRACE = 8.0
#: Seconds that the kernel has to end its jobs: schedulers kill half a minute after they asked.
JOBS_GRACE = 16.0
#: Seconds after which a cell that caught an interrupt hears another.
_AGAIN = 2.0


class Interrupter:
    """Waits for the kernel of one run.

    Parameters
    ----------
    client
        Speaks with the kernel.
    stop
        Set when the run is to end.
    hurry
        Set when nobody wants to wait for that.
    """

    def __init__(self, client: HeadlessClient, stop: asyncio.Event, hurry: asyncio.Event) -> None:
        self._client = client
        self._stop = stop
        self._hurry = hurry

    async def interrupt(self) -> None:
        """Interrupt what the kernel works on."""
        assert self._client.km is not None
        await waited(self._client.km.interrupt_kernel())

    async def unless_stopped(self, work: Coroutine[Any, Any, T]) -> T | None:
        """The result of ``work``, which is dropped when the run is to end."""
        task = asyncio.ensure_future(work)
        await _first(task, self._stop)
        if task.done():
            return task.result()
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        return None

    async def interruptible(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of ``work``, during which the kernel is interrupted when the run is to end.

        Raises
        ------
        DeadKernelError
            If the kernel does not let go of it in time; it is to be ended then.
        """
        assert self._client.km is not None
        task = asyncio.ensure_future(work)
        await _first(task, self._stop)
        deadline = asyncio.get_running_loop().time() + CELL_GRACE
        while not task.done():
            left = deadline - asyncio.get_running_loop().time()
            if left <= 0 or self._hurry.is_set():
                await self._drop(task)
            await self.interrupt()
            await _first(task, self._hurry, timeout=min(_AGAIN, left))
        return task.result()

    async def briefly(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of ``work``, for which an ending run has some time left."""
        task = asyncio.ensure_future(work)
        await _first(task, self._hurry, timeout=JOBS_GRACE)
        if not task.done():
            await self._drop(task)
        return task.result()

    async def _drop(self, task: asyncio.Task[Any]) -> None:
        self._client.shutdown_kernel = "immediate"
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError, DeadKernelError):
            await task
        raise DeadKernelError("The kernel did not answer to an interrupt.")


async def _first(
    task: asyncio.Task[Any], event: asyncio.Event, timeout: float | None = None
) -> None:
    """Return once ``task`` is done, ``event`` is set, or the time is over."""
    if task.done():
        return
    waiting = asyncio.ensure_future(event.wait())
    try:
        await asyncio.wait({task, waiting}, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()


async def waited(result: Awaitable[Any] | None) -> None:
    """Wait for what a kernel manager does; some do it at once and give nothing."""
    if result is not None:
        await result
