"""What a run has done, written so that no crash loses it: one JSON object a line, appended.

A line is on the disk before the next thing happens; one that was cut by a crash or a full disk is
left out by readers. The format is told in docs/workflows.md. Decides nothing and runs nothing.
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

VERSION = 1
MAX_BYTES = 64 << 20
Event = dict[str, Any]


class Journal:
    """The journal of one run, as its runner writes it.

    Parameters
    ----------
    complain
        Hears, once, that the file cannot be written; the run goes on, and what could not be
        written is tried again with the next event.
    """

    def __init__(self, path: Path, complain: Callable[[str], None]) -> None:
        self._path = path
        self._complain = complain
        self._waiting = b""
        self._told = False
        self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        size = os.fstat(self._file).st_size
        if size and os.pread(self._file, 1, size - 1) != b"\n":
            self._waiting = b"\n"  # the last line of a runner that was killed while it wrote

    def add(self, event: str, **facts: Any) -> None:
        """Write one event with the present time."""
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
                self._complain(
                    f"The journal {self._path} cannot be written: {exc.strerror}. The run goes "
                    "on; should it be killed, it begins again from what was written."
                )

    def unwritten(self) -> list[Event]:
        """What could not be written."""
        return _events(self._waiting)

    def close(self) -> None:
        """Write what is still waiting, and close."""
        if self._file >= 0:
            self._write()
            os.close(self._file)
            self._file = -1


def read_journal(path: Path) -> list[Event]:
    """The events of a journal; lines that are no event are left out.

    Raises
    ------
    OSError
        If it cannot be read.
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
    """A file that one process holds for as long as it lives, however it ends."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.file = -1

    def take(self, seconds: float = 2.0) -> bool:
        """Hold it; False when somebody else does for that long."""
        file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        deadline = time.monotonic() + seconds
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                # Somebody may only be looking whether it is held.
                if time.monotonic() > deadline:
                    os.close(file)
                    return False
                time.sleep(0.02)
            else:
                self.file = file
                return True

    def release(self) -> None:
        """Let it go here; a process that has inherited it still holds it."""
        if self.file >= 0:
            os.close(self.file)
            self.file = -1


def is_held(path: Path) -> bool:
    """Whether a living process holds the lock."""
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
def held(lock: Lock, seconds: float) -> Iterator[bool]:
    """The lock for a while; whether it was got."""
    got = lock.take(seconds)
    try:
        yield got
    finally:
        lock.release()
