"""A journal: JSON lines appended to a file of the working directory, read after a restart.

A record is written as a whole or not at all. When a journal lacks a record its file ``*.complete``
is removed, which works on a full disk too. Nothing is synced to the disk: after a crash of the
machine no coordinator starts on it again.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import Any, Iterator, Mapping

#: The journal of ``YarnPlacer``: the container of each seat.
SEATS_FILE = "containers.jsonl"
#: Bytes of records that wait for space on the disk; with more the journal stays incomplete.
MAX_PENDING_BYTES = 4 << 20


class Journal:
    """A file of JSON lines that is open for appending.

    Parameters
    ----------
    path
        Created with mode 0600 if it does not exist.

    Attributes
    ----------
    complete
        Whether the file held every record that was appended before it was opened.
    failure
        Why records wait to be written; empty if all are written.

    Raises
    ------
    OSError
        If the file cannot be opened or created.
    """

    def __init__(self, path: str) -> None:
        self._path, self._marker = path, path + ".complete"
        self.failure = ""
        self._pending = bytearray()
        self._lost = False
        exists = os.path.exists(path)
        if not exists:
            self._set_marker()
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        self._valid_bytes, readable = self._truncate()
        self._end = self._valid_bytes
        self.complete = readable and os.path.exists(self._marker)

    def _truncate(self) -> tuple[int, bool]:
        """Remove an incomplete last line; return the valid bytes, and whether all are valid."""
        with open(self._path, "rb") as file:
            data = file.read()
        os.ftruncate(self._file, data.rfind(b"\n") + 1)
        valid = 0
        for line in data[: data.rfind(b"\n") + 1].splitlines(keepends=True):
            try:
                if not isinstance(json.loads(line), dict):
                    return valid, False
            except (ValueError, RecursionError):
                return valid, False
            valid += len(line)
        return valid, True

    @property
    def is_new(self) -> bool:
        """Whether nothing was appended before the journal was opened."""
        return self._valid_bytes == 0 and self.complete

    def append(self, entry: Mapping[str, Any]) -> bool:
        """Add a record after those that wait; return False if it could not be written.

        A record that cannot be written is kept in memory and written with the next one.
        """
        if self._lost:
            return False
        self._pending += json.dumps(entry).encode() + b"\n"
        written = 0
        try:
            while written < len(self._pending):
                written += os.write(self._file, self._pending[written:])
        except OSError as exc:
            self._fail(exc)
            return False
        self._end += written
        self._pending.clear()
        if self.failure:
            with suppress(OSError):
                self._set_marker()
                self.failure = ""
        return True

    def _fail(self, exc: OSError) -> None:
        """Mark the journal as incomplete and remove a partly written record."""
        self.failure = exc.strerror or str(exc)
        with suppress(OSError):
            os.unlink(self._marker)
        with suppress(OSError):
            os.ftruncate(self._file, self._end)
        if len(self._pending) > MAX_PENDING_BYTES:
            self._lost = True
            self._pending.clear()

    def entries(self) -> Iterator[dict[str, Any]]:
        """Yield the records at the time of opening, up to the first invalid one."""
        with open(self._path, "rb") as file:
            for line in file.read(self._valid_bytes).splitlines():
                yield json.loads(line)

    def clear(self) -> None:
        """Remove all records; later records do not depend on them."""
        os.ftruncate(self._file, 0)
        self._valid_bytes = self._end = 0
        self._pending.clear()
        self._lost = False
        self.failure = ""
        try:
            self._set_marker()
        except OSError as exc:
            self.failure = exc.strerror or str(exc)

    def _set_marker(self) -> None:
        os.close(os.open(self._marker, os.O_WRONLY | os.O_CREAT, 0o600))

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


def is_complete(path: str) -> bool:
    """Whether the journal at ``path`` is complete; True if there is no journal."""
    return not os.path.exists(path) or os.path.exists(path + ".complete")
