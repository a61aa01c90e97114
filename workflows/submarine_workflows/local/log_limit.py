"""Keeps a node's log below a size while its command writes: the middle goes, and the log says so.

The command has the file open for appending, so that it goes on at the new end. Beginning and end
stay, since what went wrong stands in one of them. Nothing is read here for people; when it is
looked at is the runner's to say.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

log = logging.getLogger(__name__)
#: Bytes of the log of one attempt, and what stays of it where it gets larger.
LIMIT, HEAD, TAIL = 64 << 20, 1 << 20, 16 << 20


@dataclass
class LogLimit:
    """One log.

    Attributes
    ----------
    left_out
        Bytes that are gone.
    """

    path: Path
    limit: int = LIMIT
    head: int = HEAD
    tail: int = TAIL
    left_out: int = 0
    _noted: int = 0

    def check(self) -> bool:
        """Shorten it if it is too large; whether it was.

        What the command writes meanwhile comes before the note and is not lost, but for what it
        writes in the instant between the last read and the cut.
        """
        try:
            if self.path.stat().st_size <= self.limit:
                return False
            self._shorten()
        except OSError as exc:  # not begun, or a disk that takes nothing: the node itself goes on
            log.debug("%s cannot be shortened: %s", self.path, exc)
            return False
        return True

    def _shorten(self) -> None:
        with self.path.open("r+b") as file:
            size = file.seek(0, 2)
            file.seek(size - self.tail)
            rest = file.read()
            # What came during that, which was long, is read in next to no time.
            rest += file.read()
            file.truncate(self.head)
        begin = rest.find(b"\n") + 1
        # The note of the last time goes with the middle, and was not the command's.
        self.left_out += size - self.head - self.tail + begin - self._noted
        note = (
            f"\n[{self.left_out:,} bytes are left out here: the log of a node is kept below "
            f"{self.limit >> 20} MiB]\n"
        ).encode()
        self._noted = len(note)
        with self.path.open("ab", buffering=0) as file:
            file.write(note + rest[begin:])
