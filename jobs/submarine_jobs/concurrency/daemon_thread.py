"""Run blocking work for an event loop in a daemon thread.

``asyncio.to_thread`` joins its threads at exit, so a call to an unreachable cluster would delay the
exit of a kernel.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


@functools.cache
def background_loop(name: str) -> asyncio.AbstractEventLoop:
    """Return the event loop of this process with this name, in a daemon thread."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True, name=name).start()
    return loop


async def in_thread(work: Callable[[], T]) -> T:
    """Run blocking work in a daemon thread, which does not delay the exit of the interpreter."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def deliver(result: T | None, error: BaseException | None) -> None:
        if future.cancelled():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]

    def run() -> None:
        result, error = None, None
        try:
            result = work()
        except BaseException as exc:
            error = exc
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(deliver, result, error)

    threading.Thread(target=run, daemon=True, name="submarine-look").start()
    return await future
