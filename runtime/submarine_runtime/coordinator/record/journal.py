"""The journal: JSON lines appended to a file of the working directory, read back after a kill.

A record is written whole or not at all. A journal that lacks a record is marked: its file
``*.complete`` is removed, which works on a full disk too. Nothing is synced to disk: the journal
outlives the process, not the machine, on which no later coordinator would start.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import Any, Iterator, Mapping

#: The journal of ``yarn_placer``: which container is whose.
SEATS_FILE = "containers.jsonl"
#: Bytes of records that wait for room on the disk; beyond that the journal stays incomplete.
MAX_WAITING = 4 << 20


class Journal:
    """One file; opened for appending.

    Parameters
    ----------
    path
        Created with mode 0600 if it does not exist.

    Attributes
    ----------
    complete
        Whether the file held every record that was appended before it was opened.
    failure
        Why records wait for being written now; empty while all are written.

    Raises
    ------
    OSError
        If the file cannot be opened or created.
    """

    def __init__(self, path: str) -> None:
        self._path, self._mark = path, path + ".complete"
        self.failure = ""
        self._waiting = bytearray()
        self._lost = False
        known = os.path.exists(path)
        if not known:
            self._set_mark()
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        self._whole, readable = self._cut()
        self._end = self._whole
        self.complete = readable and os.path.exists(self._mark)

    def _cut(self) -> tuple[int, bool]:
        """Cut off a broken last line; bytes up to the first bad record, and whether it is none."""
        with open(self._path, "rb") as file:
            data = file.read()
        os.ftruncate(self._file, data.rfind(b"\n") + 1)
        whole = 0
        for line in data[: data.rfind(b"\n") + 1].splitlines(keepends=True):
            try:
                if not isinstance(json.loads(line), dict):
                    return whole, False
            except (ValueError, RecursionError):
                return whole, False
            whole += len(line)
        return whole, True

    @property
    def fresh(self) -> bool:
        """Whether nothing was ever appended before it was opened."""
        return self._whole == 0 and self.complete

    def append(self, entry: Mapping[str, Any]) -> bool:
        """Add a record, after those that wait; False if it could not be written now.

        A record that cannot be written is kept in memory and written with the next one.
        """
        if self._lost:
            return False
        self._waiting += json.dumps(entry).encode() + b"\n"
        written = 0
        try:
            while written < len(self._waiting):
                written += os.write(self._file, self._waiting[written:])
        except OSError as exc:
            self._fail(exc)
            return False
        self._end += written
        self._waiting.clear()
        if self.failure:
            with suppress(OSError):
                self._set_mark()
                self.failure = ""
        return True

    def _fail(self, exc: OSError) -> None:
        """Mark the journal and take a half-written record back."""
        self.failure = exc.strerror or str(exc)
        with suppress(OSError):
            os.unlink(self._mark)
        with suppress(OSError):
            os.ftruncate(self._file, self._end)
        if len(self._waiting) > MAX_WAITING:
            self._lost = True
            self._waiting.clear()

    def entries(self) -> Iterator[dict[str, Any]]:
        """The records that it held when it was opened, up to the first bad one."""
        with open(self._path, "rb") as file:
            for line in file.read(self._whole).splitlines():
                yield json.loads(line)

    def start_over(self) -> None:
        """Drop all records: what is appended from now on does not depend on them."""
        os.ftruncate(self._file, 0)
        self._whole = self._end = 0
        self._waiting.clear()
        self._lost = False
        self.failure = ""
        try:
            self._set_mark()
        except OSError as exc:
            self.failure = exc.strerror or str(exc)

    def _set_mark(self) -> None:
        os.close(os.open(self._mark, os.O_WRONLY | os.O_CREAT, 0o600))

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


def is_complete(path: str) -> bool:
    """Whether the journal at ``path`` lacks no record; True where there is none."""
    return not os.path.exists(path) or os.path.exists(path + ".complete")
