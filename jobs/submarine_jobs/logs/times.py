"""Read the index of a log: pairs of an offset and the time at which the log had that length.

The index is written in a container, so invalid lines are ignored.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import NamedTuple

from submarine_jobs.access import JobDirectory
from submarine_runtime.protocol import LogKey, layout

#: Maximum bytes of an index that are read, and the largest valid offset.
MAX_INDEX, FARTHEST = 4 << 20, (1 << 53) - 1


class Mark(NamedTuple):
    """All bytes before ``offset`` had been written at ``time``, epoch seconds."""

    offset: int
    time: float


def parse_index(data: bytes) -> list[Mark]:
    """Return the marks of an index, ordered by offset."""
    found = []
    for line in data[:MAX_INDEX].decode("ascii", "replace").splitlines():
        words = line.split()
        try:
            mark = Mark(int(words[0]), float(words[1]))
        except (ValueError, IndexError):
            continue
        if 0 < mark.offset <= FARTHEST and math.isfinite(mark.time):
            found.append(mark)
    return sorted(found)


def parse_columns(data: bytes) -> tuple[Sequence[int], Sequence[float]]:
    """Return the offsets and the times of an index, like ``parse_index`` and several times faster.

    An index with invalid lines takes longer.
    """
    words = data[:MAX_INDEX].split()
    try:
        offsets, times = list(map(int, words[::2])), list(map(float, words[1::2]))
    except ValueError:
        offsets, times = [], []
    if (
        not 2 * len(offsets) == 2 * len(times) == 2 * data.count(b"\n") == len(words)
        or any(map(operator.gt, offsets, offsets[1:]))
        or not all(map(math.isfinite, times))
        or (offsets and not 0 < offsets[0] <= offsets[-1] <= FARTHEST)
    ):
        marks = parse_index(data)
        return [mark.offset for mark in marks], [mark.time for mark in marks]
    return offsets, times


def read_index(directory: JobDirectory, key: LogKey) -> bytes | None:
    """Return the index that was shipped at the end of an attempt; None if there is none.

    Raises
    ------
    ClusterError
        If the file system does not answer.
    """
    attempt = layout.parse_attempt(key.attempt)
    if attempt is None:
        return None
    place = directory.file(layout.log_directory(key.task, *attempt))
    try:
        return directory.storage.read(f"{place}/{layout.index_name(key.stream)}", 0, MAX_INDEX)
    except FileNotFoundError:
        return None


def shipped_index(directory: JobDirectory, key: LogKey) -> list[Mark] | None:
    """Return the marks of ``read_index``."""
    data = read_index(directory, key)
    return None if data is None else parse_index(data)


def part_of(marks: Sequence[Mark], begin: int, end: int, maximum: int) -> list[Mark]:
    """Return the marks of the bytes ``begin``..``end``, evenly reduced to at most ``maximum``.

    The last mark is kept, so that the time of each byte remains known.
    """
    found = [mark for mark in marks if mark.offset > begin]
    inside = sum(mark.offset < end for mark in found)
    found = found[: inside + 1]
    step = max(1, math.ceil(len(found) / max(1, maximum)))
    return found[::-1][::step][::-1]
