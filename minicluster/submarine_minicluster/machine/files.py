"""A lock that several processes use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from submarine_minicluster.errors import MiniclusterError
from submarine_runtime.translation import _


@contextmanager
def file_lock(
    path: Path, *, timeout: float, on_wait: Callable[[], None] | None = None
) -> Iterator[None]:
    """Hold an exclusive lock on `path` while the block runs.

    The kernel releases the lock when its holder ends, so locks do not become stale.

    Parameters
    ----------
    path
        The lock file. It is created if necessary and is not removed.
    timeout
        Seconds to wait while another process holds the lock.
    on_wait
        Called once if another process holds the lock.

    Raises
    ------
    MiniclusterError
        If another process still holds the lock after `timeout` seconds.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path)
    try:
        try:
            lock.acquire(timeout=0)
        except Timeout:
            if on_wait:
                on_wait()
            lock.acquire(timeout=timeout, poll_interval=0.1)
    except Timeout:
        raise MiniclusterError(
            _(
                "Another process has held {path} for {timeout:.0f} s. Wait for "
                "that process or end it."
            ).format(path=path, timeout=timeout)
        ) from None
    try:
        yield
    finally:
        lock.release()
