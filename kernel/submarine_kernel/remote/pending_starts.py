"""The starts of kernels that wait in this process: how far they are, how they end with its server.

jupyter-server fails to stop while a kernel is being started, so whoever stops it ends the starts
first. Knows no kernel; ``placing`` looks whether it is over, ``provisioner`` says who waits.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass

#: Seconds between two looks whether the last start has ended.
LOOK = 0.05
_over = threading.Event()


@dataclass(eq=False)
class Start:
    """One start.

    Parameters
    ----------
    kernel, notebook
        Its kernelspec, and the document that it is for; empty: none.
    words
        What it does or waits for at the moment.
    """

    kernel: str = ""
    notebook: str = ""
    words: str = ""

    def tell(self, words: str) -> None:
        """New words; for any thread."""
        self.words = words
        _changed()


_waiting: set[Start] = set()
_listeners: set[Callable[[], None]] = set()


@contextlib.contextmanager
def waiting(start: Start) -> Iterator[None]:
    """Around a start; in the server's thread."""
    _waiting.add(start)
    _changed()
    try:
        yield
    finally:
        _waiting.discard(start)
        _changed()


def going_on() -> list[Start]:
    """The starts that wait; in the server's thread."""
    return list(_waiting)


@contextlib.contextmanager
def listening(listener: Callable[[], None]) -> Iterator[None]:
    """While it lasts, ``listener`` is called after each change of ``going_on``, in any thread."""
    _listeners.add(listener)
    try:
        yield
    finally:
        _listeners.discard(listener)


def _changed() -> None:
    for listener in tuple(_listeners):
        listener()


def over() -> bool:
    """Whether a start that waits is to fail now; for any thread."""
    return _over.is_set()


async def end_starts(seconds: float = 15.0) -> bool:
    """Have all starts of this process fail; in the server's loop.

    Parameters
    ----------
    seconds
        How long to wait for them: each gives its job up first.

    Returns
    -------
    bool
        Whether all have ended.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    _over.set()
    try:
        while _waiting and loop.time() < deadline:
            await asyncio.sleep(LOOK)
    finally:
        _over.clear()
    return not _waiting
