"""Merge the current logs of several tasks in the order in which they were written.

The order comes from the index of each log in the job directory, which has offset and time of every
few seconds. A log without an index is not divided. ``following`` follows running jobs.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from submarine_jobs.access import LogChunk
from submarine_jobs.logs.reader import LogReader
from submarine_jobs.logs.times import index_or_nothing
from submarine_runtime.protocol import LogKey

if TYPE_CHECKING:
    from submarine_jobs.access import JobHandle

#: Above this number, logs are read one after the other: each open log keeps chunks in memory.
MAX_OPEN = 32


def merged(job: JobHandle, keys: Sequence[LogKey], starts: dict[LogKey, int]) -> Iterator[LogChunk]:
    """Yield the chunks of these logs, each from its offset in ``starts``."""
    if len(keys) > MAX_OPEN:
        for key in keys:
            yield from read_from(job, key, starts.get(key, 0))
        return
    sources = [_timed(job, key, starts.get(key, 0), number) for number, key in enumerate(keys)]
    for _, _, chunk in heapq.merge(*sources, key=lambda item: item[:2]):
        yield chunk


def read_from(
    job: JobHandle, key: LogKey, start: int, limit: int | None = None
) -> Iterator[LogChunk]:
    """Yield one log from ``start`` to its current end, or ``limit`` bytes of it."""
    return LogReader(job).chunks(key, start, None if limit is None else start + limit)


def _timed(
    job: JobHandle, key: LogKey, start: int, number: int
) -> Iterator[tuple[float, int, LogChunk]]:
    """Yield (time, number, chunk), where time is when the chunk had been written."""
    marks = iter(index_or_nothing(job.directory, key))
    end, written = next(marks, (1 << 62, 0.0))
    for chunk in read_from(job, key, start):
        rest = chunk
        while True:
            while end <= rest.offset:
                # Bytes behind the last mark were written after it.
                end, written = next(marks, (1 << 62, written))
            size = min(len(rest.data), end - rest.offset)
            yield written, number, replace(rest, data=rest.data[:size])
            if size >= len(rest.data):
                break
            rest = replace(rest, offset=rest.offset + size, data=rest.data[size:])
