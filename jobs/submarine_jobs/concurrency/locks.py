"""Lock a file against other processes; the system releases the lock when its holder ends."""

from __future__ import annotations

from pathlib import Path

from filelock import FileLock


def file_lock(path: Path) -> FileLock:
    """Return a lock that is not held yet; the file has mode 0600 and stays after the release.

    ``with`` waits for the lock; ``acquire(timeout=...)`` raises TimeoutError.
    """
    # Another thread may release it.
    return FileLock(path, mode=0o600, thread_local=False)
