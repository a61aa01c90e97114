"""A lock between processes, so that two `start`s of one cluster, or two downloads, take turns."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from submarine_minicluster.errors import MiniclusterError


@contextmanager
def file_lock(
    path: Path, *, timeout: float, on_wait: Callable[[], None] | None = None
) -> Iterator[None]:
    """Hold an exclusive lock on `path` for the duration of the block.

    The kernel drops the lock when the holder dies, so that none is ever stale.

    Parameters
    ----------
    path
        The lock file; it is created where absent and never removed.
    timeout
        Seconds to wait for another holder.
    on_wait
        Called once when somebody else holds the lock.

    Raises
    ------
    MiniclusterError
        When the lock is still held by another process after `timeout` seconds.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as handle:
        deadline = time.monotonic() + timeout
        told = False
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if not told and on_wait:
                    on_wait()
                told = True
                if time.monotonic() > deadline:
                    raise MiniclusterError(
                        f"Another process has held {path} for {timeout:.0f} s; "
                        "wait for it or end it."
                    ) from None
                time.sleep(0.1)
        yield
