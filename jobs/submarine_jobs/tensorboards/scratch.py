"""A private directory for a TensorBoard or a kernel, removed at its end, or at the next start.

Holds copies and sockets only. The lock in it tells whether a process uses it: the system lets go of
a lock when its holder dies, however that happens.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from submarine_jobs.config import make_private

_LOCK = "lock"
_DOOR = ".door"


class Scratch:
    """One directory, 0700, below ``parent``.

    Parameters
    ----------
    name
        Its name; by default a new one.

    Raises
    ------
    FileExistsError
        If a directory of that name is in use.

    Attributes
    ----------
    path
        The directory.
    """

    def __init__(self, parent: Path, name: str = "") -> None:
        make_private(parent)
        # Whoever removes what is left over must not meet a directory that has no lock yet.
        with _door(parent):
            _remove_stale(parent)
            self.path = parent / (name or f"{os.getpid()}-{secrets.token_hex(4)}")
            self.path.mkdir(mode=0o700)
            self._lock = os.open(self.path / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def remove(self) -> None:
        """Delete it with all that is in it; no error when it is gone."""
        shutil.rmtree(self.path, ignore_errors=True)
        with suppress(OSError):
            os.close(self._lock)


def remove_stale(parent: Path) -> None:
    """Delete what processes that are gone have left below ``parent``."""
    if parent.is_dir():
        with _door(parent):
            _remove_stale(parent)


def _remove_stale(parent: Path) -> None:
    for folder in parent.iterdir():
        if folder.is_dir() and not folder.is_symlink() and not _in_use(folder):
            shutil.rmtree(folder, ignore_errors=True)


def _in_use(folder: Path) -> bool:
    try:
        descriptor = os.open(folder / _LOCK, os.O_RDWR)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


@contextmanager
def _door(parent: Path) -> Iterator[None]:
    """One at a time makes or removes directories below ``parent``."""
    descriptor = os.open(parent / _DOOR, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
