"""Files that several processes use: a lock, and atomic replacement."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

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
    with path.open("a") as handle:
        deadline = time.monotonic() + timeout
        reported = False
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if not reported and on_wait:
                    on_wait()
                reported = True
                if time.monotonic() > deadline:
                    raise MiniclusterError(
                        _(
                            "Another process has held {path} for {timeout:.0f} s. Wait for "
                            "that process or end it."
                        ).format(path=path, timeout=timeout)
                    ) from None
                time.sleep(0.1)
        yield
