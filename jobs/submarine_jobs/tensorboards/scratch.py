"""A private directory for a TensorBoard or a kernel, removed at its end or at the next start.

It contains only copies and sockets. A lock in it shows that a process uses it; the system releases
the lock when the process ends.
"""

from __future__ import annotations

import os
import secrets
import shutil
from pathlib import Path

from submarine_jobs.concurrency import file_lock
from submarine_jobs.config import make_private

_LOCK = "lock"
#: Held to make and remove directories.
_PARENT_LOCK = ".door"


class Scratch:
    """A directory of mode 0700 below ``parent``.

    Parameters
    ----------
    name
        Its name; the default is a new one.

    Raises
    ------
    FileExistsError
        If a directory of that name is used by a process.

    Attributes
    ----------
    path
        The directory.
    """

    def __init__(self, parent: Path, name: str = "") -> None:
        make_private(parent)
        # A process that removes stale directories must not see one without a lock.
        with file_lock(parent / _PARENT_LOCK):
            _remove_stale(parent)
            self.path = parent / (name or f"{os.getpid()}-{secrets.token_hex(4)}")
            self.path.mkdir(mode=0o700)
            self._lock = file_lock(self.path / _LOCK)
            self._lock.acquire(timeout=0)

    def remove(self) -> None:
        """Remove the directory; no error if it does not exist."""
        shutil.rmtree(self.path, ignore_errors=True)
        self._lock.release()


def remove_stale(parent: Path) -> None:
    """Remove the directories of ended processes below ``parent``."""
    if parent.is_dir():
        with file_lock(parent / _PARENT_LOCK):
            _remove_stale(parent)


def _remove_stale(parent: Path) -> None:
    for folder in parent.iterdir():
        if folder.is_dir() and not folder.is_symlink() and not _in_use(folder):
            shutil.rmtree(folder, ignore_errors=True)


def _in_use(folder: Path) -> bool:
    lock = folder / _LOCK
    if not lock.exists():
        return False
    try:
        with file_lock(lock).acquire(timeout=0):
            return False
    except OSError:  # Also TimeoutError: another process holds it.
        return True
