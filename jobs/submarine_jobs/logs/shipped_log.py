"""Read a task's log from the segments in the job directory, by offset.

Finished segments are immutable and named by the offset of their first byte, so a listing gives all
offsets and only the requested bytes are read.
"""

from __future__ import annotations

import bisect
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

from submarine_jobs.access import JobDirectory, LogChunk
from submarine_jobs.logs.times import Mark
from submarine_runtime.protocol import layout

#: Maximum bytes of one read; larger segments are read in pieces.
PIECE = 4 << 20
#: Number of pieces that are read ahead.
AHEAD = 4
#: Maximum number of tasks or attempts of one directory.
MAX_LISTED = 10_000


def shipped_tasks(directory: JobDirectory) -> list[str]:
    """Return the tasks with a shipped log, by role and index; one storage call."""
    found = []
    for name in _names(directory, directory.file(layout.LOGS)):
        role, _, index = name.rpartition("-")
        try:
            found.append(layout.split_task(f"{role}:{index}"))
        except ValueError:
            continue
    return [f"{role}:{index}" for role, index in sorted(found)]


def shipped_attempts(directory: JobDirectory, task: str) -> list[str]:
    """Return the attempts of a task with a shipped log, oldest first; one storage call."""
    parent = directory.file(layout.log_directory(task, 1, 1).rpartition("/")[0])
    found = [layout.parse_attempt(name) for name in _names(directory, parent)]
    return [layout.attempt_name(*attempt) for attempt in sorted(a for a in found if a)]


def shipped_lengths(directory: JobDirectory) -> dict[str, int]:
    """Return the length of each shipped log by its key in the record; walks the directory."""
    lengths: dict[str, int] = {}
    try:
        files = directory.storage.walk(directory.file(layout.LOGS))
    except FileNotFoundError:
        return lengths
    for path, size in files:
        task_attempt, _, name = path.rpartition("/")
        segment = layout.parse_segment(name) or layout.parse_growing(name)
        if segment is None:
            continue
        task, _, attempt = task_attempt.partition("/")
        role, _, index = task.rpartition("-")
        key = f"{role}:{index}/{attempt}/{segment.stream}"
        lengths[key] = max(lengths.get(key, 0), segment.offset + size)
    return lengths


def _names(directory: JobDirectory, path: str) -> list[str]:
    try:
        entries = directory.storage.list_directory(path)
    except FileNotFoundError:
        return []
    return [entry.name for entry in entries[:MAX_LISTED]]


class ShippedLog:
    """The shipped log of one attempt of one task.

    Parameters
    ----------
    directory
        The job's directory.
    task
        For example ``worker:0``.
    attempt
        For example ``e1-a1``; None: the newest shipped attempt at the first ``refresh``.
    """

    def __init__(
        self, directory: JobDirectory, task: str = "worker:0", attempt: str | None = None
    ) -> None:
        self._directory = directory
        self._task = task
        self.attempt = attempt
        self._segments: dict[str, list[tuple[int, int]]] = {}
        self._shipped: dict[str, list[Mark]] = {}
        #: Time of the newest segment in epoch seconds; None without a segment.
        self.modified: float | None = None

    def refresh(self) -> None:
        """List the segments; one or two storage calls."""
        if self.attempt is None:
            self.attempt = next(reversed(shipped_attempts(self._directory, self._task)), None)
        if self.attempt is None:
            return
        found: dict[str, list[tuple[int, int]]] = {}
        shipped: dict[str, list[Mark]] = {}
        try:
            entries = self._directory.storage.list_directory(self._place())
        except FileNotFoundError:
            return
        finished = {layout.parse_segment(entry.name) for entry in entries}
        for entry in entries:
            segment = layout.parse_segment(entry.name)
            growing = layout.parse_growing(entry.name)
            if growing is not None and entry.size and growing not in finished:
                # HDFS reports no length while a file is written, so this file was left by a killed
                # container, or is in a local directory.
                segment = growing
            if segment is not None:
                found.setdefault(segment.stream, []).append((segment.offset, entry.size))
                mark = Mark(segment.offset + entry.size, entry.modified)
                shipped.setdefault(segment.stream, []).append(mark)
                self.modified = max(self.modified or 0.0, entry.modified)
        self._segments = {stream: sorted(pieces) for stream, pieces in found.items()}
        self._shipped = {stream: sorted(marks) for stream, marks in shipped.items()}

    def length(self, stream: str) -> int:
        """Return the length of ``stream`` at the last ``refresh``."""
        pieces = self._segments.get(stream)
        return pieces[-1][0] + pieces[-1][1] if pieces else 0

    def marks(self, stream: str) -> list[Mark]:
        """Return end offset and time of each segment at the last ``refresh``."""
        return list(self._shipped.get(stream, []))

    def read(self, stream: str, offset: int, limit: int) -> LogChunk:
        """Return at most ``limit`` bytes from ``offset`` (negative: from the end)."""
        if offset < 0:
            offset = max(0, self.length(stream) + offset)
        data = b"".join(
            self._read(path, start, size)
            for path, start, size in self._pieces(stream, offset, offset + limit)
        )
        return self._chunk(stream, offset, data)

    def read_through(
        self, stream: str, offset: int = 0, end: int | None = None
    ) -> Iterator[LogChunk]:
        """Yield the log from ``offset`` to ``end`` (default: its end) in order, with read-ahead."""
        length = self.length(stream)
        pieces = self._pieces(stream, offset, length if end is None else min(end, length))
        waiting: deque[Future[bytes]] = deque()
        with ThreadPoolExecutor(AHEAD, "submarine-log") as pool:
            for path, start, size in pieces:
                waiting.append(pool.submit(self._read, path, start, size))
                if len(waiting) < AHEAD:
                    continue
                chunk = self._chunk(stream, offset, waiting.popleft().result())
                offset = chunk.end
                yield chunk
            while waiting:
                chunk = self._chunk(stream, offset, waiting.popleft().result())
                offset = chunk.end
                yield chunk

    def chunks(
        self, stream: str, offset: int = 0, end: int | None = None, piece: int | None = None
    ) -> Iterator[LogChunk]:
        """Yield the log from ``offset`` to ``end`` in order.

        Parameters
        ----------
        piece
            Bytes of each read; None: large reads, with read-ahead.
        """
        if piece is None:
            yield from self.read_through(stream, offset, end)
            return
        last = self.length(stream) if end is None else min(end, self.length(stream))
        while (
            offset < last and (chunk := self.read(stream, offset, min(piece, last - offset))).data
        ):
            yield chunk
            offset = chunk.end

    def _read(self, path: str, start: int, size: int) -> bytes:
        """Read bytes of a segment, which may still have the name of an unfinished segment."""
        storage = self._directory.storage
        try:
            return storage.read(path, start, size)
        except FileNotFoundError:
            try:
                return storage.read(path + layout.GROWING_SUFFIX, start, size)
            except FileNotFoundError:  # renamed between the two reads
                return storage.read(path, start, size)

    def _pieces(self, stream: str, begin: int, end: int) -> Iterator[tuple[str, int, int]]:
        """Yield the parts of segment files in ``begin``..``end``: (path, offset in file, size)."""
        segments = self._segments.get(stream, [])
        first = max(0, bisect.bisect_right(segments, (begin, 1 << 62)) - 1)
        for start, size in segments[first:]:
            if start >= end:
                return
            path = f"{self._place()}/{layout.segment_name(stream, start)}"
            low, high = max(begin, start), min(end, start + size)
            while low < high:
                piece = min(PIECE, high - low)
                yield path, low - start, piece
                low += piece

    def _chunk(self, stream: str, offset: int, data: bytes) -> LogChunk:
        return LogChunk(stream, offset, data, self._task, self.attempt or layout.FIRST_ATTEMPT)

    def _place(self) -> str:
        epoch, number = layout.parse_attempt(self.attempt or layout.FIRST_ATTEMPT) or (1, 1)
        return self._directory.file(layout.log_directory(self._task, epoch, number))
