"""Merge the logs of several streams and tasks in the order in which they were written.

The order comes from the index of each log, which has the offset of each second, or else from the
times of its segments. Lines stay whole, and lines of one second stay together. A log without times
comes first. ``following`` follows running jobs.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from submarine_jobs.access import LogChunk
from submarine_jobs.errors import ClusterError
from submarine_jobs.logs.position import LogKey
from submarine_jobs.logs.shipped_log import ShippedLog
from submarine_jobs.logs.times import Mark, index_or_nothing, parse_index, part_of

if TYPE_CHECKING:
    from submarine_jobs.access import JobDirectory, JobHandle

#: Number of logs that are read ahead, in large pieces; of more, each read is small.
MAX_READ_AHEAD = 32
#: Bytes and marks in memory for all logs together; and bytes of each log.
MAX_BYTES, MAX_MARKS, LEAST_BYTES = 32 << 20, 1 << 18, 64 << 10
#: Bytes that wait for the end of their line.
MAX_LINE = 64 << 10


def merged(job: JobHandle, keys: Sequence[LogKey], starts: dict[LogKey, int]) -> Iterator[LogChunk]:
    """Yield the chunks of these logs, each from its offset in ``starts``."""
    piece = _piece(len(keys)) if len(keys) > MAX_READ_AHEAD else None
    logs = [read_from(job, key, starts.get(key, 0), piece=piece) for key in keys]
    return in_order(logs, lambda key: _marks(job, key))


def merged_shipped(
    directory: JobDirectory,
    starts: Mapping[LogKey, int],
    logs: Sequence[ShippedLog],
    *,
    ended: bool,
) -> Iterator[LogChunk]:
    """Yield the chunks of shipped logs, each from its offset in ``starts``.

    Parameters
    ----------
    logs
        The listed log of each key.
    ended
        Whether the job has ended, so that the logs have their indexes.
    """
    listed = dict(zip(starts, logs, strict=True))
    size = _piece(len(logs)) if len(logs) > MAX_READ_AHEAD else None

    def marks(key: LogKey) -> list[Mark]:
        found = index_or_nothing(directory, key) if ended else []
        return found or listed[key].marks(key.stream)

    return in_order([_shipped(listed[key], key, starts[key], size) for key in starts], marks)


def _shipped(log: ShippedLog, key: LogKey, start: int, size: int | None) -> Iterator[LogChunk]:
    """Yield one log; it ends without an error if its segments are gone."""
    with suppress(FileNotFoundError):
        if size is None:
            yield from log.read_through(key.stream, start)
            return
        while (chunk := log.read(key.stream, start, size)).data:
            yield chunk
            start = chunk.end


def read_from(
    job: JobHandle, key: LogKey, start: int, limit: int | None = None, *, piece: int | None = None
) -> Iterator[LogChunk]:
    """Yield one log from ``start`` to its current end, or ``limit`` bytes of it.

    Parameters
    ----------
    piece
        Bytes of each read; None: large reads, with read-ahead where the log is read from its start.
    """
    if start == 0 and limit is None and piece is None:
        yield from job.read_log(key.stream, task=key.task, attempt=key.attempt or None)
        return
    left = (1 << 50) if limit is None else limit
    while left > 0:
        size = min(left, piece or 1 << 20)
        chunk = job.log(key.stream, start, size, task=key.task, attempt=key.attempt or None)
        if not chunk.data:
            return
        yield chunk
        start = chunk.end
        left -= len(chunk.data)


def in_order(
    logs: Sequence[Iterator[LogChunk]], marks: Callable[[LogKey], Sequence[Mark]]
) -> Iterator[LogChunk]:
    """Merge logs, each a sequence of chunks, by the times of their lines."""
    if len(logs) == 1:
        return logs[0]
    most = max(64, MAX_MARKS // max(1, len(logs)))
    sources = [_timed(chunks, number, marks, most) for number, chunks in enumerate(logs)]
    return (chunk for _, _, chunk in heapq.merge(*sources, key=lambda item: item[:2]))


def _piece(logs: int) -> int:
    return max(LEAST_BYTES, MAX_BYTES // logs)


def _timed(
    chunks: Iterator[LogChunk], number: int, marks: Callable[[LogKey], Sequence[Mark]], most: int
) -> Iterator[tuple[float, int, LogChunk]]:
    """Yield (time, number, chunk): whole lines, and the time at which they had been written."""
    first = next(chunks, None)
    if first is None:
        return
    known = part_of(marks(LogKey(first.task, first.attempt, first.stream)), 0, 1 << 62, most)
    # Bytes behind the last mark were written after it.
    later = itertools.chain(known, [Mark(1 << 62, known[-1].time if known else 0.0)])
    mark = next(later)
    held = b""
    for chunk in itertools.chain([first], chunks):
        rest = replace(chunk, offset=chunk.offset - len(held), data=held + chunk.data)
        while True:
            while mark.offset <= rest.offset:
                mark = next(later)
            whole = rest.data.rfind(b"\n", 0, mark.offset - rest.offset) + 1
            if whole:
                yield mark.time, number, replace(rest, data=rest.data[:whole])
                rest = replace(rest, offset=rest.offset + whole, data=rest.data[whole:])
            if mark.offset >= rest.end:
                break
            mark = next(later)  # A line has the time of its last byte.
        held = rest.data
        if len(held) > MAX_LINE:
            yield mark.time, number, rest
            held = b""
    if held:
        yield mark.time, number, rest


def _marks(job: JobHandle, key: LogKey) -> list[Mark]:
    """Return the index of a log, of a running task from the job's port, or its segments' times."""
    marks = index_or_nothing(job.directory, key)
    if not marks and not job.final:
        with suppress(ClusterError):
            if (client := job.agent()) is not None:
                marks = parse_index(client.times(key.task, key.stream, key.attempt))
    if not marks:
        with suppress(ClusterError, FileNotFoundError):
            log = ShippedLog(job.directory, key.task, key.attempt)
            log.refresh()
            marks = log.marks(key.stream)
    return marks
