"""The last lines of the streams of a job, in order of arrival, with a size limit."""

from __future__ import annotations

from submarine_jobs.access import LogChunk

TAIL_BYTES = 8 << 10


class Tail:
    """Keeps complete lines of each stream, so that a line never mixes two streams."""

    def __init__(self, limit: int = 2 * TAIL_BYTES) -> None:
        self._limit = limit
        self._done = bytearray()
        self._open: dict[str, bytes] = {}

    def add(self, chunk: LogChunk) -> None:
        """Add the next chunk of one stream."""
        data = self._open.pop(chunk.stream, b"") + chunk.data
        head, newline, rest = data.rpartition(b"\n")
        self._done += head + newline
        if rest:
            self._open[chunk.stream] = rest[-self._limit :]
        if len(self._done) > self._limit:
            kept = self._done[-self._limit :]
            # Begin at a line, unless one line is longer than the limit.
            _, found, after = kept.partition(b"\n")
            self._done = bytearray(after if found else kept)

    def text(self) -> str:
        """Return the kept text; bytes that are not UTF-8 become replacement characters."""
        data = bytes(self._done) + b"\n".join(self._open.values())
        return data[-self._limit :].decode("utf-8", "replace")

    def set_text(self, text: str) -> None:
        """Replace the kept text."""
        self._done, self._open = bytearray(text.encode()), {}
