"""Length and buffered tail of one log of a running job.

Older bytes are read by offset with ``LogReader``.
"""

from __future__ import annotations

import time

from submarine_jobs.access import LogChunk
from submarine_runtime.protocol import LogCursor, LogKey, LogLine


class GrowingLog:
    """One stream of one attempt of one task.

    Parameters
    ----------
    ends
        Current lengths of all logs of the job, in bytes.

    Attributes
    ----------
    first
        Offset of the first received byte; 0 if the log was listed.
    live
        Whether bytes have come from the live stream.
    since
        Time at which it became known, ``time.monotonic``.
    """

    def __init__(self, key: LogKey, ends: LogCursor) -> None:
        self._key, self._ends = key, ends
        self.first: int | None = None
        self.live = False
        self.since = time.monotonic()
        self._data = bytearray()
        self._encoded = (0, "")

    @property
    def end(self) -> int:
        """Current length in bytes."""
        return self._ends.of(self._key)

    @property
    def kept_from(self) -> int:
        """Offset of the oldest buffered byte."""
        return self.end - len(self._data)

    def add(self, line: LogLine, keep: int) -> bool:
        """Add a line of the live stream; return whether some of its bytes are new.

        Parameters
        ----------
        keep
            Number of bytes to buffer.

        Raises
        ------
        ValueError
            If its text is not base64.
        """
        if line.data is None:
            return self.grow(line.end)
        self.live = True
        if self.first is None:
            self.first = line.begin
        gap = self._ends.gap(self._key, line.begin)
        chunk = LogChunk.of(line).fresh(self._ends)
        if chunk is None:
            return False
        if gap:
            self._data.clear()  # missing bytes are read by offset
        self._data += chunk.data
        if len(self._data) > 2 * keep:
            del self._data[:-keep]
        whole = chunk.offset == line.begin and len(line.data) <= keep
        self._encoded = (line.begin, line.data) if whole else (0, "")
        return True

    def encoded(self, offset: int) -> str:
        """Return the newest piece as base64 text if it begins at ``offset``; else empty."""
        begin, text = self._encoded
        return text if begin == offset else ""

    def grow(self, end: int) -> bool:
        """Set the length; return whether it has grown."""
        if self.first is None:
            self.first = 0
        if end <= self.end:
            return False
        self._data.clear()
        self._encoded = (0, "")
        self._ends.move(self._key, end)
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
