"""The records of a share as batches, from any position: units, windows of shuffling, batches.

The sequence of records depends only on the units, their order and the keys of the permutations.
A position is therefore three numbers, and no record of a buffer has to be stored.
"""

from __future__ import annotations

from typing import Callable, Iterable, Iterator, NamedTuple, Sequence

from submarine_data.batches import Batch, concatenate
from submarine_data.formats import Split
from submarine_data.sharding import permutation

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
    """A batch, the positions before and after it, and its size in bytes."""

    batch: Batch
    before: Position
    after: Position
    size: int


class _Piece(NamedTuple):
    """Consecutive records of the stream; shuffled ones count from the start of their window."""

    batch: Batch
    position: Position
    shuffled: bool = False

    def part(self, start: int, length: int) -> _Piece:
        whole = start == 0 and length >= len(self.batch)
        batch = self.batch if whole else self.batch.slice(start, length)
        return _Piece(batch, self.after(start), self.shuffled)

    def after(self, count: int) -> Position:
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


def stream(
    read: Callable[[Split], Iterator[Batch]],
    splits: Sequence[Split],
    position: Position,
    batch_size: int,
    window: int = 0,
    key: tuple[object, ...] = (),
) -> Iterator[Item]:
    """Yield the batches of a share from a position on.

    Parameters
    ----------
    read
        Returns the records of a part.
    splits
        Parts of the share, in the order of the epoch.
    position
        Where to start.
    batch_size
        Records of a batch; the last one may have fewer.
    window
        Records that are shuffled together; 0 keeps their order.
    key
        Seed of the permutations.
    """
    pieces = _records(read, splits, position)
    if window:
        pieces = _shuffled(pieces, window, key)
    for group in _groups(_without(pieces, position.skip), batch_size):
        batch = concatenate([piece.batch for piece in group])
        last = group[-1]
        yield Item(batch, group[0].position, last.after(len(last.batch)), batch.nbytes)


def _records(
    read: Callable[[Split], Iterator[Batch]], splits: Sequence[Split], position: Position
) -> Iterator[_Piece]:
    for number in range(position.split, len(splits)):
        done = 0
        skip = position.record if number == position.split else 0
        for batch in read(splits[number]):
            start = max(0, min(len(batch), skip - done))
            if start < len(batch):
                piece = _Piece(batch, Position(number, done))
                yield piece.part(start, len(batch) - start) if start else piece
            done += len(batch)


def _shuffled(pieces: Iterator[_Piece], window: int, key: tuple[object, ...]) -> Iterator[_Piece]:
    for group in _groups(pieces, window):
        split, record, _skip = group[0].position
        batch = concatenate([piece.batch for piece in group])
        order = permutation(len(batch), *key, split, record)
        yield _Piece(batch.take(order), Position(split, record), shuffled=True)


def _without(pieces: Iterator[_Piece], skip: int) -> Iterator[_Piece]:
    for piece in pieces:
        count = len(piece.batch)
        if skip >= count:
            skip -= count
        elif skip:
            yield piece.part(skip, count - skip)
            skip = 0
        else:
            yield piece


def _groups(pieces: Iterator[_Piece], size: int) -> Iterator[list[_Piece]]:
    """Yield groups of pieces with ``size`` records; the last may have fewer."""
    group: list[_Piece] = []
    missing = size
    for piece in pieces:
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
