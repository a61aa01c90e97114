"""The starts of kernels that wait in this process, and how they end with its server.

jupyter-server fails to stop while a kernel is being started, so whoever stops it ends the starts
first. Knows no kernel; ``placing`` looks whether it is over, ``provisioner`` says who waits.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator

#: Seconds between two looks whether the last start has ended.
LOOK = 0.05
_over = threading.Event()
_waiting: set[object] = set()


@contextlib.contextmanager
def waiting() -> Iterator[None]:
    """Around a start; in the server's thread."""
    start = object()
    _waiting.add(start)
    try:
        yield
    finally:
        _waiting.discard(start)


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
