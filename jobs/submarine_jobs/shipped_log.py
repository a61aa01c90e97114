"""Read a task's log from the segments in the job directory, by offset.

Segments are immutable and named by the offset of their first byte, so a listing tells everything
and nothing is read that was not asked for. Does not follow (``job``) and asks no agent (``live``).
"""

from __future__ import annotations

import bisect
import re
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

from submarine_jobs.directory import JobDirectory
from submarine_jobs.live import LogChunk
from submarine_runtime.protocol import layout

#: Bytes of one read of the storage; larger segments are read in pieces.
PIECE = 4 << 20
#: Pieces fetched ahead when a log is read through.
AHEAD = 4
_ATTEMPT = re.compile(r"^e(\d+)-a(\d+)$")


class ShippedLog:
    """The shipped log of one task: its newest attempt.

    Parameters
    ----------
    directory
        The job's directory.
    task
        For example ``worker:0``.
    """

    def __init__(self, directory: JobDirectory, task: str = "worker:0") -> None:
        self._directory = directory
        self._task = task
        self._attempt: str | None = None
        self._segments: dict[str, list[tuple[int, int]]] = {}
        #: When the newest segment was shipped, epoch seconds; None before the first.
        self.modified: float | None = None

    def refresh(self) -> None:
        """List the segments again; one or two calls to the storage."""
        if self._attempt is None:
            self._attempt = self._newest_attempt()
        if self._attempt is None:
            return
        found: dict[str, list[tuple[int, int]]] = {}
        for entry in self._directory.storage.list_directory(self._attempt):
            segment = layout.parse_segment(entry.name)
            if segment is not None:
                found.setdefault(segment.stream, []).append((segment.offset, entry.size))
                self.modified = max(self.modified or 0.0, entry.modified)
        self._segments = {stream: sorted(pieces) for stream, pieces in found.items()}

    def length(self, stream: str) -> int:
        """Bytes of ``stream`` shipped so far, as of the last ``refresh``."""
        pieces = self._segments.get(stream)
        return pieces[-1][0] + pieces[-1][1] if pieces else 0

    def read(self, stream: str, offset: int, limit: int) -> LogChunk:
        """At most ``limit`` bytes from ``offset`` (negative: from the end)."""
        if offset < 0:
            offset = max(0, self.length(stream) + offset)
        data = b"".join(
            self._directory.storage.read(path, start, size)
            for path, start, size in self._pieces(stream, offset, offset + limit)
        )
        return LogChunk(stream, offset, data, self._task)

    def read_through(self, stream: str, offset: int = 0) -> Iterator[LogChunk]:
        """The whole log from ``offset`` in order, fetched some pieces ahead."""
        pieces = self._pieces(stream, offset, self.length(stream))
        storage = self._directory.storage
        waiting: deque[Future[bytes]] = deque()
        with ThreadPoolExecutor(AHEAD, "submarine-log") as pool:
            for path, start, size in pieces:
                waiting.append(pool.submit(storage.read, path, start, size))
                if len(waiting) < AHEAD:
                    continue
                chunk = LogChunk(stream, offset, waiting.popleft().result(), self._task)
                offset = chunk.end
                yield chunk
            while waiting:
                chunk = LogChunk(stream, offset, waiting.popleft().result(), self._task)
                offset = chunk.end
                yield chunk

    def _pieces(self, stream: str, begin: int, end: int) -> Iterator[tuple[str, int, int]]:
        """Parts of segment files that make up ``begin``..``end``: (path, offset there, size)."""
        segments = self._segments.get(stream, [])
        first = max(0, bisect.bisect_right(segments, (begin, 1 << 62)) - 1)
        for start, size in segments[first:]:
            if start >= end:
                return
            path = f"{self._attempt}/{layout.segment_name(stream, start)}"
            low, high = max(begin, start), min(end, start + size)
            while low < high:
                piece = min(PIECE, high - low)
                yield path, low - start, piece
                low += piece

    def _newest_attempt(self) -> str | None:
        parent = self._directory.file(layout.log_directory(self._task, 1, 1).rpartition("/")[0])
        try:
            entries = self._directory.storage.list_directory(parent)
        except FileNotFoundError:
            return None
        found = [
            ((int(match.group(1)), int(match.group(2))), entry.name)
            for entry in entries
            if (match := _ATTEMPT.match(entry.name))
        ]
        return f"{parent}/{max(found)[1]}" if found else None
