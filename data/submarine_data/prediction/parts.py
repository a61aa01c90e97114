"""Divide an input into parts: the units of work, each of which becomes one file.

The parts depend on the files, the columns and the size only, not on the number of workers. They
follow the order of the files, so the names of the results do too.
"""

from __future__ import annotations

from typing import NamedTuple, Sequence

from submarine_data.formats import Split
from submarine_data.streams import merged

#: Bounds of the usual size of a part, in bytes of the input.
SMALLEST, LARGEST = 1 << 20, 64 << 20
#: Parts of an input that needs no part above ``LARGEST``.
_USUAL_PARTS = 256
#: Two adjacent parts are larger than one size, so an input has at most twice as many parts. An
#: output of a job has at most 20,000 files.
_MOST_SIZES = 9_000


class Part(NamedTuple):
    """A part of the input: its number from 0, what is read, and the bytes of that."""

    number: int
    splits: Sequence[Split]
    weight: int

    @property
    def name(self) -> str:
        """Name of the file with the results."""
        return f"part-{self.number:05d}.parquet"


def part_size(total: int, wanted: int = 0) -> int:
    """Return the size of a part in bytes.

    Parameters
    ----------
    total
        Bytes of the input.
    wanted
        The size that the user wants; 0: none.
    """
    size = wanted or max(SMALLEST, min(LARGEST, total // _USUAL_PARTS))
    return max(size, total // _MOST_SIZES)


def cut(units: Sequence[Split], size: int) -> list[Part]:
    """Join consecutive units to parts of at most ``size`` bytes; a larger unit is a part.

    Parameters
    ----------
    units
        In the order of the files.
    """
    groups: list[list[Split]] = []
    weight = 0
    for unit in units:
        if not groups or weight + unit.weight > size:
            groups.append([])
            weight = 0
        groups[-1].append(unit)
        weight += unit.weight
    return [
        Part(number, merged(group), sum(unit.weight for unit in group))
        for number, group in enumerate(groups)
    ]
