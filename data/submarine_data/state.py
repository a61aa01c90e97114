"""The state of a dataset: where its iteration continues, as a dict for JSON."""

from __future__ import annotations

import hashlib
import json
from collections import deque
from typing import Any, Mapping, NamedTuple, Sequence

from submarine_data.errors import DataError
from submarine_data.ranks import Place
from submarine_data.streams import Position
from submarine_runtime.translation import _

_VERSION = 1
#: Batches before the last one for which a state can be requested.
_HISTORY = 4096


class Start(NamedTuple):
    """Where an epoch starts.

    Parameters
    ----------
    epoch
        Its number, from 0.
    streams
        Position of each stream: one, or one for each DataLoader worker. Empty: the epoch's start.
    next
        The stream that returns the next batch.
    """

    epoch: int
    streams: tuple[Position, ...] = ()
    next: int = 0

    def positions(self, count: int) -> tuple[Position, ...]:
        """Return the positions of ``count`` streams.

        Raises
        ------
        DataError
            If the state was made with another number of DataLoader workers within an epoch.
        """
        if self.streams and len(self.streams) != count:
            raise DataError(
                _(
                    "The state is of {old} streams within epoch {epoch}, and there are {new}: "
                    "use the same number of DataLoader workers until the epoch ends."
                ).format(old=len(self.streams), epoch=self.epoch, new=count)
            )
        return self.streams or (Position(),) * count


class Progress:
    """The start of the current epoch's iteration, and the positions after its last batches."""

    def __init__(self, start: Start, streams: int = 1) -> None:
        self._streams = list(start.positions(streams))
        self._count = 0
        self._past: deque[Start] = deque([start], _HISTORY)
        self._epoch = start.epoch

    @property
    def epoch(self) -> int:
        """The epoch that is iterated."""
        return self._epoch

    def advance(self, stream: int, position: Position) -> None:
        """Note that a stream has returned a batch, and where it continues."""
        self._streams[stream] = position
        following = (stream + 1) % len(self._streams)
        self._past.append(Start(self._epoch, tuple(self._streams), following))
        self._count += 1

    def move(self, position: Position) -> None:
        """Note that a record of the only stream was returned."""
        self._streams[0] = position
        self._past[-1] = Start(self._epoch, (position,), 0)

    def after(self, batches: int | None) -> Start:
        """Return the state after the last batch, or after a number of batches.

        Raises
        ------
        DataError
            If so many batches were not returned, or too many since.
        """
        back = 0 if batches is None else self._count - batches
        if not 0 <= back < len(self._past):
            raise DataError(
                _(
                    "There is no state after {batches} batches: {count} were returned, and the "
                    "last {kept} states are kept."
                ).format(batches=batches, count=self._count, kept=len(self._past))
            )
        return self._past[-1 - back]


def fingerprint(parts: Sequence[object]) -> str:
    """Return a digest of what a state depends on."""
    text = json.dumps(parts, default=str, sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:16]


def state_of(start: Start, place: Place, data: str) -> dict[str, Any]:
    """Return the state for JSON."""
    return {
        "version": _VERSION,
        "data": data,
        "rank": place.rank,
        "world": place.world,
        "epoch": start.epoch,
        "streams": [list(position) for position in start.streams],
        "next": start.next,
    }


def start_of(state: Mapping[str, Any], place: Place, data: str) -> Start:
    """Return where to start by a state.

    Raises
    ------
    DataError
        If it is no state, belongs to other data, or to another rank within an epoch.
    """
    try:
        if state["version"] != _VERSION:
            raise ValueError(state["version"])
        streams = tuple(Position(*map(int, position)) for position in state["streams"])
        start = Start(int(state["epoch"]), streams, int(state["next"]))
        old = Place(int(state["rank"]), int(state["world"]))
        same = state["data"] == data
    except (KeyError, TypeError, ValueError) as exc:
        raise DataError(
            _("This is no state of a dataset: {error}.").format(
                error=f"{type(exc).__name__}: {exc}"
            )
        ) from exc
    if not same:
        raise DataError(
            _(
                "The state belongs to other data: files and their sizes, filter, seed and shuffle "
                "must be those with which it was made."
            )
        )
    if streams and old != place:
        raise DataError(
            _(
                "The state is of rank {old_rank} of {old_world} within epoch {epoch}, and this is "
                "rank {rank} of {world}: start at an epoch to change the number of processes."
            ).format(
                old_rank=old.rank,
                old_world=old.world,
                epoch=start.epoch,
                rank=place.rank,
                world=place.world,
            )
        )
    return start
