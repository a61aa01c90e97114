"""Distribute units of files over ranks: pure functions, the same result in each process.

A *unit* is a part of a file that is read by itself: a row group, a stripe, a range of bytes, or a
whole file. The share of a rank is a function of the units' sizes, the seed, the epoch, the rank and
the number of ranks. Every unit belongs to exactly one rank.
"""

from __future__ import annotations

import random
from typing import Sequence

#: Bounds of the size of a unit, in bytes, where a file can be divided at any place.
SMALLEST_UNIT = 1 << 20
LARGEST_UNIT = 64 << 20
#: Units for each rank, so that the shares differ by a few per cent.
_UNITS_PER_RANK = 32


def unit_size(total: int, world: int) -> int:
    """Return the size to which large files are divided, in bytes.

    Parameters
    ----------
    total
        Bytes of all files.
    world
        Number of ranks.
    """
    wanted = total // (world * _UNITS_PER_RANK)
    return max(SMALLEST_UNIT, min(LARGEST_UNIT, wanted))


def ranges(size: int, step: int) -> list[tuple[int, int]]:
    """Divide ``size`` bytes into ranges (start, end) of about ``step`` bytes; at least one."""
    count = max(1, round(size / step))
    return [(size * i // count, size * (i + 1) // count) for i in range(count)]


def permutation(count: int, *key: object) -> list[int]:
    """Return the numbers below ``count`` in an order that depends on the key only."""
    order = list(range(count))
    text = "/".join(map(str, key))
    random.Random(text).shuffle(order)  # noqa: S311 - an order of records, not a secret
    return order


def share(weights: Sequence[int], rank: int, world: int) -> range:
    """Return the positions that belong to a rank: consecutive, and about equal in weight.

    A position belongs to the rank in whose part of the total weight its centre lies. A share is at
    most the mean share and the heaviest unit.

    Parameters
    ----------
    weights
        Weight of each unit in bytes, in the order in which they are read.
    rank
        From 0 to ``world`` - 1.
    world
        Number of ranks.
    """
    # Twice the centre, in integers: exact and equal on each machine. A weight of 0 counts as 1.
    total = sum(max(1, weight) for weight in weights)
    first = after = 0
    before = 0
    for weight in weights:
        weight = max(1, weight)
        owner = (2 * before + weight) * world // (2 * total)
        before += weight
        first += owner < rank
        after += owner <= rank
    return range(first, after)


def order(count: int, shuffled: bool, seed: int, epoch: int) -> list[int]:
    """Return the order of the units in an epoch: that of the files, or a permutation for it."""
    return permutation(count, seed, epoch) if shuffled else list(range(count))
