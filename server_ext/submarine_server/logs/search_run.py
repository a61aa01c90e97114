"""One search over one log, in a thread of its own kind: bounded in time, stopped when told to.

Searches have their own few threads, so that the longest of them holds up neither the event loop nor
another request. How a log is searched is ``searching``; what for is ``patterns``.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from submarine_jobs.errors import ClusterError
from submarine_jobs.logs import LogKey
from submarine_server.logs.reader import LogReader
from submarine_server.logs.searching import (
    FIRST_PIECE,
    GROWTH,
    LARGEST_PIECE,
    Hit,
    Read,
    backward,
    forward,
)
from submarine_server.service import Core, Lane

#: Searches at once, and those that may wait for their turn.
AT_ONCE, WAITING = 4, 32
#: Seconds after which a search says where it is, so that whoever wants goes on from there.
SECONDS = 20.0

_lanes: WeakKeyDictionary[Core, Lane] = WeakKeyDictionary()


def lane_of(core: Core) -> Lane:
    """Where the server's searches run."""
    return _lanes.setdefault(core, Lane(AT_ONCE, WAITING))


@dataclass(frozen=True)
class Search:
    """What is looked for, from where: None is the beginning, backward the end."""

    pattern: Any
    begin: int | None
    backward: bool
    most: int


@dataclass(frozen=True)
class Done:
    """How far it came: ``next`` is where to go on, None when all was searched."""

    next: int | None
    scanned: int


def search(
    reader: LogReader,
    key: LogKey,
    wish: Search,
    stop: threading.Event,
    emit: Callable[[Sequence[Hit]], None],
) -> Done:
    """Search the log as it stands now; blocks, and ``emit`` may.

    Parameters
    ----------
    stop
        Set when nobody wants the rest.
    emit
        Gets hits as they are found, in the direction of the search.
    """
    until = time.monotonic() + SECONDS
    end = reader.length(key)
    begin = min(end if wish.begin is None and wish.backward else wish.begin or 0, end)

    def read(offset: int, limit: int) -> bytes:
        return whole(reader, key, offset, max(0, min(limit, end - offset)))

    if wish.backward:
        steps = backward(read, wish.pattern, begin, wish.most)
    else:
        steps = forward(Ahead(read), wish.pattern, begin, end, wish.most)
    left, scanned, reached = wish.most, 0, begin
    for found in steps:
        reached = found.reached
        scanned += found.scanned
        left -= len(found.hits)
        if found.hits:
            emit(found.hits)
        if left <= 0 or stop.is_set() or time.monotonic() > until:
            break
    over = reached <= 0 if wish.backward else reached >= end
    return Done(None if over else reached, scanned)


class Ahead:
    """Reads the next piece while the last one is searched: file systems answer slowly.

    One piece ahead, in a daemon thread; a search that ends early leaves it to end by itself.
    """

    def __init__(self, read: Read) -> None:
        self._read = read
        self._next: tuple[int, Future[bytes]] | None = None

    def __call__(self, offset: int, limit: int) -> bytes:
        """See ``searching.Read``."""
        ahead, self._next = self._next, None
        fits = ahead is not None and ahead[0] == offset
        data = ahead[1].result()[:limit] if ahead is not None and fits else b""
        if not data:
            data = self._read(offset, limit)
        if limit >= FIRST_PIECE and len(data) == limit:
            self._fetch(offset + limit, min(limit * GROWTH, LARGEST_PIECE))
        return data

    def _fetch(self, offset: int, limit: int) -> None:
        future: Future[bytes] = Future()

        def work() -> None:
            try:
                future.set_result(self._read(offset, limit))
            except BaseException as exc:
                future.set_exception(exc)

        threading.Thread(target=work, daemon=True, name="submarine-ahead").start()
        self._next = (offset, future)


def whole(reader: LogReader, key: LogKey, offset: int, limit: int) -> bytes:
    """That part of the log, from wherever its pieces are.

    Raises
    ------
    ClusterError
        If a piece cannot be had, for example because its container died before it was shipped.
    """
    parts: list[bytes] = []
    while limit > 0:
        data = reader.read_through(key, offset, limit)
        if not data:
            raise ClusterError(f"The log of {key} from byte {offset} on cannot be had now.")
        parts.append(data)
        offset += len(data)
        limit -= len(data)
    return b"".join(parts)
