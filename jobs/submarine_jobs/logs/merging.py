"""Logs of several tasks read as one, in the order in which they were written, as far as is known.

Where the job directory has the index of a log (offset and time of every few seconds), pieces are
put in order by it; a log without one comes as a whole. Reads once; ``following`` follows.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from submarine_jobs.access import LogChunk
from submarine_jobs.logs.position import LogKey
from submarine_jobs.logs.times import index_or_nothing

if TYPE_CHECKING:
    from submarine_jobs.access import JobHandle

#: More logs are read one after the other: each that is open holds some pieces in memory.
MAX_OPEN = 32


def merged(job: JobHandle, keys: Sequence[LogKey], starts: dict[LogKey, int]) -> Iterator[LogChunk]:
    """All of these logs as they stand now, each from its place in ``starts``."""
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
    """One log from ``start`` to the end as it stands now, or ``limit`` bytes of it."""
    if start == 0 and limit is None:
        yield from job.read_log(key.stream, task=key.task, attempt=key.attempt or None)
        return
    left = (1 << 50) if limit is None else limit
    while left > 0:
        size = min(left, 1 << 20)
        chunk = job.log(key.stream, start, size, task=key.task, attempt=key.attempt or None)
        if not chunk.data:
            return
        yield chunk
        start = chunk.end
        left -= len(chunk.data)


def _timed(
    job: JobHandle, key: LogKey, start: int, number: int
) -> Iterator[tuple[float, int, LogChunk]]:
    """Pieces with the time at which each had been written."""
    marks = iter(index_or_nothing(job.directory, key))
    end, moment = next(marks, (1 << 62, 0.0))
    for chunk in read_from(job, key, start):
        rest = chunk
        while True:
            while end <= rest.offset:
                # What comes behind the last mark was written after it.
                end, moment = next(marks, (1 << 62, moment))
            size = min(len(rest.data), end - rest.offset)
            yield moment, number, replace(rest, data=rest.data[:size])
            if size >= len(rest.data):
                break
            rest = replace(rest, offset=rest.offset + size, data=rest.data[size:])
