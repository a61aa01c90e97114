"""What is known of one log while it grows: how long it is, and its newest bytes, bounded.

Older bytes are read by offset where somebody wants them (``logs.reader``). Asks nobody.
"""

from __future__ import annotations

import time


class GrowingLog:
    """One stream of one attempt of one task.

    Attributes
    ----------
    end
        Bytes that there are.
    first
        Offset of the first byte that was heard of; 0 where the whole log was listed.
    since
        When it was first heard of, ``time.monotonic``.
    """

    def __init__(self) -> None:
        self.end = 0
        self.first: int | None = None
        self.since = time.monotonic()
        self._data = bytearray()

    @property
    def kept_from(self) -> int:
        """Offset of the oldest byte that is kept."""
        return self.end - len(self._data)

    def add(self, offset: int, data: bytes, keep: int) -> bool:
        """Take bytes of the live stream; whether there are new ones among them.

        Parameters
        ----------
        keep
            Bytes to keep.
        """
        if self.first is None:
            self.first = offset
        if offset + len(data) <= self.end:
            return False
        if offset > self.end:
            self._data.clear()  # what lies between is read by offset
        else:
            data = data[self.end - offset :]
        self._data += data
        self.end = max(self.end, offset) + len(data)
        if len(self._data) > 2 * keep:
            del self._data[:-keep]
        return True

    def grow(self, end: int) -> bool:
        """Take note of a length; whether there are new bytes."""
        if self.first is None:
            self.first = 0
        if end <= self.end:
            return False
        self._data.clear()
        self.end = end
        return True

    def kept(self, offset: int, limit: int) -> bytes:
        """Bytes from ``offset``, if they are kept; else none."""
        begin = offset - self.kept_from
        return bytes(self._data[begin : begin + limit]) if begin >= 0 else b""

    def line_after(self, offset: int) -> int:
        """Where the first line behind ``offset`` begins, as far as that is known; or ``offset``."""
        begin = offset - self.kept_from
        newline = self._data.find(b"\n", begin) if begin >= 0 else -1
        return self.kept_from + newline + 1 if newline >= 0 else offset
