"""Length and buffered tail of one log of a running job.

Older bytes are read by offset with ``LogReader``.
"""

from __future__ import annotations

import time


class GrowingLog:
    """One stream of one attempt of one task.

    Attributes
    ----------
    end
        Current length in bytes.
    first
        Offset of the first received byte; 0 if the log was listed.
    since
        Time at which it became known, ``time.monotonic``.
    """

    def __init__(self) -> None:
        self.end = 0
        self.first: int | None = None
        self.since = time.monotonic()
        self._data = bytearray()

    @property
    def kept_from(self) -> int:
        """Offset of the oldest buffered byte."""
        return self.end - len(self._data)

    def add(self, offset: int, data: bytes, keep: int) -> bool:
        """Add bytes of the live stream; return whether some of them are new.

        Parameters
        ----------
        keep
            Number of bytes to buffer.
        """
        if self.first is None:
            self.first = offset
        if offset + len(data) <= self.end:
            return False
        if offset > self.end:
            self._data.clear()  # a gap, which is read by offset
        else:
            data = data[self.end - offset :]
        self._data += data
        self.end = max(self.end, offset) + len(data)
        if len(self._data) > 2 * keep:
            del self._data[:-keep]
        return True

    def grow(self, end: int) -> bool:
        """Set the length; return whether it has grown."""
        if self.first is None:
            self.first = 0
        if end <= self.end:
            return False
        self._data.clear()
        self.end = end
        return True

    def kept(self, offset: int, limit: int) -> bytes:
        """Return buffered bytes from ``offset``; empty if they are not buffered."""
        begin = offset - self.kept_from
        return bytes(self._data[begin : begin + limit]) if begin >= 0 else b""

    def line_after(self, offset: int) -> int:
        """Return the start of the line after ``offset``, or ``offset`` if it is not buffered."""
        begin = offset - self.kept_from
        newline = self._data.find(b"\n", begin) if begin >= 0 else -1
        return self.kept_from + newline + 1 if newline >= 0 else offset
