"""Limit the size of a node's log while its command writes, by removing the middle.

The command appends to the file, so it continues at the new end. The beginning and the end are kept,
because one of them usually contains the error. The runner decides when to check the size.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

log = logging.getLogger(__name__)
#: Bytes of the log of one attempt, and of its beginning and end that are kept.
LIMIT, HEAD, TAIL = 64 << 20, 1 << 20, 16 << 20


@dataclass
class LogLimit:
    """Limit of one log.

    Attributes
    ----------
    left_out
        Bytes removed so far.
    """

    path: Path
    limit: int = LIMIT
    head: int = HEAD
    tail: int = TAIL
    left_out: int = 0
    _noted: int = 0

    def check(self) -> bool:
        """Shorten the log if it is too large; return whether it was.

        Output that the command writes meanwhile is placed before the note. Only output between the
        last read and the truncation is lost.
        """
        try:
            if self.path.stat().st_size <= self.limit:
                return False
            self._shorten()
        except OSError as exc:  # the log does not exist yet or the disk is full: the node continues
            log.debug("%s cannot be shortened: %s", self.path, exc)
            return False
        return True

    def _shorten(self) -> None:
        with self.path.open("r+b") as file:
            size = file.seek(0, 2)
            file.seek(size - self.tail)
            rest = file.read()
            # Read output that arrived during the long first read.
            rest += file.read()
            file.truncate(self.head)
        begin = rest.find(b"\n") + 1
        # The previous note is removed with the middle and is not output of the command.
        self.left_out += size - self.head - self.tail + begin - self._noted
        note = (
            f"\n[{self.left_out:,} bytes omitted: the log of a node is limited to "
            f"{self.limit >> 20} MiB]\n"
        ).encode()
        self._noted = len(note)
        with self.path.open("ab", buffering=0) as file:
            file.write(note + rest[begin:])
