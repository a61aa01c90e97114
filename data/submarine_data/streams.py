"""The records of a share as batches, from any position: units, windows of shuffling, batches.

The sequence of records depends only on the units, their order and the keys of the permutations.
A position is therefore three numbers, and no record of a buffer has to be stored.
"""

from __future__ import annotations

from itertools import chain
from typing import Callable, Iterable, Iterator, List, NamedTuple, Sequence, Tuple

from submarine_data.batches import Batch, concatenate
from submarine_data.formats import Split
from submarine_data.sharding import permutation

#: Records pass the queue of the background thread in parts of about this many bytes, and are cut
#: to batches afterwards: a small batch is a view of a part.
_PART = 4 << 20
#: Adjacent units of a file are read together up to this size. A restored position reads its part
#: from the start, so this also bounds the bytes that are read again.
_LARGEST_PART = 256 << 20


class Position(NamedTuple):
    """Where a stream continues.

    Parameters
    ----------
    split, record
        Part of the share, and the record in it, where reading starts: that of the next record, or
        with shuffling the first one of the current window.
    skip
        Records that follow there, in the order of the stream, and are not returned again.
    """

    split: int = 0
    record: int = 0
    skip: int = 0


class Item(NamedTuple):
    """A batch, and the positions before and after it."""

    batch: Batch
    before: Position
    after: Position


class Piece(NamedTuple):
    """Consecutive records of the stream; shuffled ones count from the start of their window."""

    batch: Batch
    position: Position
    shuffled: bool = False

    def part(self, start: int, length: int) -> Piece:
        """Return ``length`` records from ``start`` on."""
        whole = start == 0 and length >= len(self.batch)
        batch = self.batch if whole else self.batch.slice(start, length)
        return Piece(batch, self.after(start), self.shuffled)

    def after(self, count: int) -> Position:
        """Return the position after the first ``count`` records."""
        split, record, skip = self.position
        return Position(
            split, record if self.shuffled else record + count, skip + count * self.shuffled
        )


def merged(splits: Iterable[Split]) -> list[Split]:
    """Join adjacent parts of a file."""
    found: list[Split] = []
    for split in splits:
        last = found[-1] if found else None
        if (
            last is not None
            and last.file.uri == split.file.uri
            and last.end == split.start
            and last.weight + split.weight <= _LARGEST_PART
        ):
            found[-1] = last._replace(end=split.end, weight=last.weight + split.weight)
        else:
            found.append(split)
    return found


#: Function that yields the records of parts, in order: number of the part, and a batch.
ReadParts = Callable[[Sequence[Split]], Iterator[Tuple[int, Batch]]]
#: What passes the queue of the background thread: at least a batch, except for the last one.
Block = List[Piece]


def blocks(
    read: ReadParts,
    splits: Sequence[Split],
    position: Position,
    batch_size: int,
    window: int = 0,
    key: tuple[object, ...] = (),
) -> Iterator[Block]:
    """Yield the records of a share from a position on.

    Parameters
    ----------
    read
        Returns the records of parts.
    splits
        Parts of the share, in the order of the epoch.
    position
        Where to start.
    batch_size
        Records of a batch: a block has at least so many, and about 4 MiB if that is more.
    window
        Records that are shuffled together; 0 keeps their order.
    key
        Seed of the permutations.
    """
    found = _records(read, splits, position)
    if window:
        found = _shuffled(found, window, key)
    block: Block = []
    records = 0
    for piece in _without(found, position.skip):
        for part in _parts(piece, batch_size):
            block.append(part)
            records += len(part.batch)
            if records >= batch_size:
                yield block
                block, records = [], 0
    if block:
        yield block


def block_size(block: Block) -> int:
    """Return the memory of a block in bytes."""
    return sum(piece.batch.nbytes for piece in block)


def batches(found: Iterable[Block], batch_size: int) -> Iterator[Item]:
    """Cut blocks to batches of ``batch_size`` records; the last one may have fewer.

    A batch within a piece is a view of it. The end of the iteration closes ``found``.
    """
    try:
        for group in _groups(chain.from_iterable(found), batch_size):
            last = group[-1]
            batch = last.batch
            if len(group) > 1:
                batch = concatenate([piece.batch for piece in group])
            yield Item(batch, group[0].position, last.after(len(last.batch)))
    finally:
        close = getattr(found, "close", None)
        if close is not None:
            close()


def _parts(piece: Piece, batch_size: int) -> Iterator[Piece]:
    """Divide a piece into parts of about ``_PART`` bytes, each a multiple of the batch size."""
    count, size = len(piece.batch), piece.batch.nbytes
    length = count * _PART // max(1, size) // batch_size * batch_size or batch_size
    if size < 2 * _PART or length >= count:
        yield piece
        return
    for start in range(0, count, length):
        yield piece.part(start, length)


def _records(read: ReadParts, splits: Sequence[Split], position: Position) -> Iterator[Piece]:
    last, done = position.split, 0
    for number, batch in read(splits[position.split :]):
        number += position.split
        if number != last:
            last, done = number, 0
        skip = position.record if number == position.split else 0
        start = max(0, min(len(batch), skip - done))
        if start < len(batch):
            piece = Piece(batch, Position(number, done))
            yield piece.part(start, len(batch) - start) if start else piece
        done += len(batch)


def _shuffled(found: Iterator[Piece], window: int, key: tuple[object, ...]) -> Iterator[Piece]:
    for group in _groups(found, window):
        split, record, _skip = group[0].position
        batch = concatenate([piece.batch for piece in group])
        order = permutation(len(batch), *key, split, record)
        yield Piece(batch.take(order), Position(split, record), shuffled=True)


def _without(found: Iterator[Piece], skip: int) -> Iterator[Piece]:
    for piece in found:
        count = len(piece.batch)
        if skip >= count:
            skip -= count
        elif skip:
            yield piece.part(skip, count - skip)
            skip = 0
        else:
            yield piece


def _groups(found: Iterable[Piece], size: int) -> Iterator[list[Piece]]:
    """Yield groups of pieces with ``size`` records; the last may have fewer."""
    group: list[Piece] = []
    missing = size
    for piece in found:
        start, count = 0, len(piece.batch)
        while count - start >= missing:
            group.append(piece.part(start, missing))
            start += missing
            yield group
            group, missing = [], size
        if start < count:
            group.append(piece.part(start, count - start))
            missing -= count - start
    if group:
        yield group
