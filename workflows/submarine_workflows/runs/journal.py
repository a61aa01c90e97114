"""Journal of a run: one JSON object per line, appended so that a crash loses no event.

A line is synced to disk before the run continues. Readers skip lines that a crash or a full disk
has truncated. docs/workflows.md describes the format.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from submarine_runtime.translation import _

VERSION = 1
MAX_BYTES = 64 << 20
Event = dict[str, Any]


class Journal:
    """Journal of one run, written by its runner.

    Parameters
    ----------
    on_error
        Called once if the file cannot be written. The run continues, and the events are written
        again with the next one.
    """

    def __init__(self, path: Path, on_error: Callable[[str], None]) -> None:
        self._path = path
        self._on_error = on_error
        self._waiting = b""
        self._told = False
        self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        size = os.fstat(self._file).st_size
        if size and os.pread(self._file, 1, size - 1) != b"\n":
            self._waiting = b"\n"  # end the line that a killed runner left incomplete

    def add(self, event: str, **facts: Any) -> None:
        """Write one event with the current time."""
        line = json.dumps({"time": time.time(), "event": event, **facts}, ensure_ascii=True)
        self._waiting += line.encode() + b"\n"
        self._write()

    def _write(self) -> None:
        try:
            while self._waiting:
                self._waiting = self._waiting[os.write(self._file, self._waiting) :]
            os.fsync(self._file)
        except OSError as exc:
            if not self._told:
                self._told = True
                self._on_error(
                    _(
                        "The journal {path} cannot be written: {strerror}. The run continues; "
                        "if it is killed, `--resume` repeats what was not written."
                    ).format(path=self._path, strerror=exc.strerror)
                )

    def unwritten(self) -> list[Event]:
        """Return the events that could not be written."""
        return _events(self._waiting)

    def close(self) -> None:
        """Write pending events and close the file."""
        if self._file >= 0:
            self._write()
            os.close(self._file)
            self._file = -1


def read_journal(path: Path) -> list[Event]:
    """Return the events of a journal; invalid lines are skipped.

    Raises
    ------
    OSError
        If the file cannot be read.
    """
    with path.open("rb") as file:
        return _events(file.read(MAX_BYTES))


def _events(data: bytes) -> list[Event]:
    found: list[Event] = []
    for line in data.split(b"\n"):
        with suppress(ValueError, RecursionError):
            event = json.loads(line)
            if isinstance(event, dict) and isinstance(event.get("event"), str):
                found.append(event)
    return found


class Lock:
    """File lock of one process, released when the process ends in any way.

    Not a lock of ``filelock``: the guard of a run's processes inherits the open file and must hold
    the lock after ``release``, which therefore closes the file without unlocking it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.file = -1

    def acquire(self, seconds: float = 2.0) -> bool:
        """Acquire the lock; return False if another process holds it for that long."""
        file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        deadline = time.monotonic() + seconds
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                # ``is_held`` of another process may hold it for an instant.
                if time.monotonic() > deadline:
                    os.close(file)
                    return False
                time.sleep(0.02)
            else:
                self.file = file
                return True

    def release(self) -> None:
        """Release the lock here; a process that inherited the file still holds it."""
        if self.file >= 0:
            os.close(self.file)
            self.file = -1


def is_held(path: Path) -> bool:
    """Return whether a running process holds the lock."""
    try:
        file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(file)


@contextmanager
def hold(lock: Lock, seconds: float) -> Iterator[bool]:
    """Hold the lock in a context; yield whether it was acquired."""
    got = lock.acquire(seconds)
    try:
        yield got
    finally:
        lock.release()
