"""The journal: JSON lines appended to a file of the working directory, read back after a kill.

A line that was cut off by a crash is dropped with what follows it. Nothing is synced to disk: the
journal outlives the process, not the machine, on which no later coordinator would start.
"""

from __future__ import annotations

import json
import os
from typing import Any, Iterator, Mapping


class Journal:
    """One file; opened for appending.

    Parameters
    ----------
    path
        Made if it is not there, mode 0600.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._whole = self._cut()
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def _cut(self) -> int:
        """Cut off a broken last line; the number of bytes that are left."""
        try:
            with open(self._path, "rb+") as file:
                data = file.read()
                whole = data.rfind(b"\n") + 1
                file.truncate(whole)
                return whole
        except FileNotFoundError:
            return 0

    @property
    def fresh(self) -> bool:
        """Whether there was nothing in it when it was opened."""
        return self._whole == 0

    def append(self, entry: Mapping[str, Any]) -> None:
        """Add an entry; it is the kernel's when this returns."""
        os.write(self._file, json.dumps(entry).encode() + b"\n")

    def entries(self) -> Iterator[dict[str, Any]]:
        """What was in it when it was opened, up to the first entry that makes no sense."""
        with open(self._path, "rb") as file:
            for line in file.read(self._whole).splitlines():
                try:
                    entry = json.loads(line)
                except ValueError:
                    return
                if not isinstance(entry, dict):
                    return
                yield entry

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)
