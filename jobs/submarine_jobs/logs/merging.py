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
from submarine_jobs.logs.reader import LogReader
from submarine_jobs.logs.times import Mark, part_of
from submarine_runtime.protocol import LogKey

if TYPE_CHECKING:
    from submarine_jobs.access import JobHandle

#: Number of logs that are read ahead, in large pieces; of more, each read is small.
MAX_READ_AHEAD = 32
#: Bytes and marks in memory for all logs together; and bytes of each log.
MAX_BYTES, MAX_MARKS, LEAST_BYTES = 32 << 20, 1 << 18, 64 << 10
#: Bytes that wait for the end of their line.
MAX_LINE = 64 << 10


def merged(job: JobHandle, keys: Sequence[LogKey], starts: dict[LogKey, int]) -> Iterator[LogChunk]:
    """Yield the chunks of these logs, each from its offset in ``starts``."""
    return merged_parts(LogReader(job), {key: (starts.get(key, 0), None) for key in keys})


def merged_parts(
    reader: LogReader, parts: Mapping[LogKey, tuple[int, int | None]]
) -> Iterator[LogChunk]:
    """Yield the chunks of these parts of logs: first offset and end; None: the end of the log."""
    many = len(parts) > MAX_READ_AHEAD
    piece = max(LEAST_BYTES, MAX_BYTES // len(parts)) if many else None
    logs = [reader.chunks(key, begin, end, piece=piece) for key, (begin, end) in parts.items()]
    return in_order(logs, lambda key: _marks(reader, key))


def read_from(
    job: JobHandle, key: LogKey, start: int, limit: int | None = None
) -> Iterator[LogChunk]:
    """Yield one log from ``start`` to its current end, or ``limit`` bytes of it."""
    return LogReader(job).chunks(key, start, None if limit is None else start + limit)


def in_order(
    logs: Sequence[Iterator[LogChunk]], marks: Callable[[LogKey], Sequence[Mark]]
) -> Iterator[LogChunk]:
    """Merge logs, each a sequence of chunks, by the times of their lines."""
    if len(logs) == 1:
        return logs[0]
    most = max(64, MAX_MARKS // max(1, len(logs)))
    sources = [_timed(chunks, number, marks, most) for number, chunks in enumerate(logs)]
    return (chunk for _, _, chunk in heapq.merge(*sources, key=lambda item: item[:2]))


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


def _marks(reader: LogReader, key: LogKey) -> list[Mark]:
    """Return the index of a log or the times of its segments; empty if they cannot be read."""
    with suppress(ClusterError, FileNotFoundError):
        return reader.times(key).marks
    return []
