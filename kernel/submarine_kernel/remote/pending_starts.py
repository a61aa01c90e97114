"""Kernel starts of this process that wait for a container: their status, and how to end them.

jupyter-server does not stop while a kernel is being started, so the server extension ends the
pending starts first. ``submission`` checks ``stopping`` while it waits.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass

#: Seconds between two checks whether the last start has ended.
POLL_SECONDS = 0.05
_stopping = threading.Event()


@dataclass(eq=False)
class PendingStart:
    """One start.

    Parameters
    ----------
    kernel, notebook
        Name of the kernelspec, and path of the document; empty if there is none.
    status
        What the start does or waits for.
    """

    kernel: str = ""
    notebook: str = ""
    status: str = ""

    def update(self, status: str) -> None:
        """Set the status; called from any thread."""
        self.status = status
        _notify()


_pending: set[PendingStart] = set()
_listeners: set[Callable[[], None]] = set()


@contextlib.contextmanager
def pending(start: PendingStart) -> Iterator[None]:
    """Register a start for the duration of the block, in the server's thread."""
    _pending.add(start)
    _notify()
    try:
        yield
    finally:
        _pending.discard(start)
        _notify()


def list_pending() -> list[PendingStart]:
    """Return the pending starts, in the server's thread."""
    return list(_pending)


@contextlib.contextmanager
def listening(listener: Callable[[], None]) -> Iterator[None]:
    """Call ``listener`` after each change for the duration of the block, in any thread."""
    _listeners.add(listener)
    try:
        yield
    finally:
        _listeners.discard(listener)


def _notify() -> None:
    for listener in tuple(_listeners):
        listener()


def stopping() -> bool:
    """Whether pending starts must fail now; called from any thread."""
    return _stopping.is_set()


async def end_starts(seconds: float = 15.0) -> bool:
    """Make all pending starts fail, in the server's loop.

    Parameters
    ----------
    seconds
        How long to wait for them. Each start cancels its job first.

    Returns
    -------
    bool
        Whether all have ended.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    _stopping.set()
    try:
        while _pending and loop.time() < deadline:
            await asyncio.sleep(POLL_SECONDS)
    finally:
        _stopping.clear()
    return not _pending
