"""Read pages of several logs in the order in which their lines were written.

The index of each log divides it into blocks: the bytes of one second. A page consists of the next
blocks of all logs in order of time, and of logs for the same time. A position is an offset in each
log, so that no byte is read twice or missed while logs and indexes grow.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from submarine_jobs.errors import UsageError
from submarine_jobs.logs import NO_INDEX, LogReader, TimeIndex, final_lengths
from submarine_jobs.model import MAX_MERGED_TASKS
from submarine_runtime.protocol import LogKey, layout, parse_log_key
from submarine_runtime.translation import _

#: Maximum number of logs of a page, of its bytes, and of its blocks.
MAX_LOGS = MAX_MERGED_TASKS * len(layout.STREAMS)
MAX_PAGE, MAX_BLOCKS = 1 << 20, 1 << 14
#: Number of logs of a running job for which the exact length is requested, and of threads.
MAX_EXACT, THREADS = 16, 8
#: Largest offset: the largest exact integer of JavaScript.
MAX_OFFSET = (1 << 53) - 1


@dataclass(frozen=True)
class PageRequest:
    """A validated request for a page.

    Attributes
    ----------
    at
        The position: an offset in each log.
    end
        Begin at the ends of the logs instead; ``at`` has the lengths that the client knows.
    around
        The log whose offset determines the position in all others by its time, so that the page
        extends in both directions; None for one direction.
    """

    at: Mapping[LogKey, int]
    end: bool
    around: LogKey | None
    backward: bool
    limit: int

    @staticmethod
    def of(body: Mapping[str, Any]) -> PageRequest:
        """Validate the client's request.

        Raises
        ------
        UsageError
            If it is invalid.
        """
        at, around = body.get("at"), body.get("around")
        end, backward = body.get("end", False), body.get("backward", False)
        if not isinstance(at, dict) or not 0 < len(at) <= MAX_LOGS:
            raise UsageError(
                _("`at` must be an object of at most {max_at} logs.").format(max_at=MAX_LOGS),
                _('One looks like "worker:0/e1-a1/stdout": 17.'),
            )
        position = {_key(text): _number(offset, 0, MAX_OFFSET) for text, offset in at.items()}
        chosen = None if around is None else _key(around)
        if chosen is not None and chosen not in position:
            raise UsageError(_("`around` must be one of the logs in `at`."))
        if not isinstance(end, bool) or not isinstance(backward, bool):
            raise UsageError(_("`end` and `backward` must be true or false."))
        limit = _number(body.get("limit", 128 << 10), 1, MAX_PAGE)
        return PageRequest(position, end, chosen, backward or end, limit)


def _key(text: Any) -> LogKey:
    key = parse_log_key(text) if isinstance(text, str) and text.isprintable() else None
    if key is None:
        raise UsageError(
            _("{text!r} is not a log.").format(text=str(text)[:60]),
            _('One looks like "worker:0/e1-a1/stdout": 17.'),
        )
    return key


def _number(value: Any, least: int, most: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise UsageError(
            _("{value} is not a whole number from {minimum} to {limit}.").format(
                value=str(value)[:24], minimum=least, limit=most
            )
        )
    return value


@dataclass
class PageLog:
    """One log of a page: its bytes from ``begin`` to ``end`` are in the page.

    ``at_line``: whether they begin at the start of a line.
    """

    key: LogKey
    index: TimeIndex
    length: int
    begin: int = 0
    end: int = 0
    data: bytes = field(default=b"", repr=False)
    at_line: bool = True

    def move(self, offset: int) -> None:
        """Set the position."""
        self.begin = self.end = min(offset, self.length)

    def next_block(self) -> tuple[float, int]:
        """Return time and end of the block at ``end``."""
        number = self.index.block_of(self.end)
        last = number == len(self.index.offsets)
        end = self.length if last else min(self.index.offsets[number], self.length)
        return self.index.time_of(self.end), end

    def block_before(self) -> tuple[float, int]:
        """Return time and start of the block that ends at ``begin`` or contains it."""
        number = self.index.block_of(self.begin - 1)
        return self.index.time_of(self.begin - 1), self.index.offsets[number - 1] if number else 0

    def offset_at(self, time: float, *, inclusive: bool) -> int:
        """Return the end of the blocks before ``time``, or up to it."""
        offsets, times = self.index.offsets, self.index.times
        if not times:
            return self.length if inclusive or time > 0 else 0
        number = (bisect_right if inclusive else bisect_left)(times, time)
        if number == len(times) and (inclusive or time > times[-1]):
            return self.length
        return min(offsets[number - 1], self.length) if number else 0


class Block(NamedTuple):
    """Bytes of a page: of the log with this number, up to ``end``, written at ``time``."""

    log: int
    begin: int
    end: int
    time: float


@dataclass(frozen=True)
class Page:
    """The logs of a page, in the order of the request, and its blocks in order of time."""

    logs: Sequence[PageLog]
    blocks: Sequence[Block]


def read_page(reader: LogReader, request: PageRequest) -> Page:
    """Read the page after or before a position, or around it; blocks."""
    with ThreadPoolExecutor(min(THREADS, len(request.at)), "submarine-page") as pool:
        logs = list(_logs(reader, request.at, pool))
        for log in logs:
            log.move(log.length if request.end else request.at[log.key])
        if request.around is not None:
            _move_to_time(logs, next(log for log in logs if log.key == request.around))
        blocks: list[Block] = []
        if request.backward or request.around is not None:
            limit = request.limit if request.around is None else request.limit // 2
            blocks = list(_backward(logs, limit))[::-1]
        if not request.backward or request.around is not None:
            limit = request.limit - sum(block.end - block.begin for block in blocks)
            blocks += _forward(logs, limit)
        list(pool.map(lambda log: _read(reader, log, backward=request.backward), logs))
    return Page(logs, _available(logs, blocks))


def _logs(
    reader: LogReader, known: Mapping[LogKey, int], pool: ThreadPoolExecutor
) -> Iterator[PageLog]:
    """Return the logs with their indexes and current lengths, at least the known ones."""
    record = reader.final_record(check_directory=True)
    final = {} if record is None else final_lengths(reader, record)
    exact = record is not None or len(known) <= MAX_EXACT

    def log(key: LogKey) -> PageLog:
        if final.get(key) == 0:
            return PageLog(key, NO_INDEX, 0)
        index = reader.index(key)
        if key in final:
            return PageLog(key, index, final[key])
        marked = max([0, *index.offsets[-1:]])
        # Else the live stream has the bytes since the last mark.
        length = reader.length(key) if exact or 0 < marked <= known[key] else marked
        return PageLog(key, index, length if record is not None else max(length, known[key]))

    return pool.map(log, known)


def _move_to_time(logs: Sequence[PageLog], chosen: PageLog) -> None:
    """Move all logs to the time of the position of one of them."""
    time = chosen.next_block()[0]
    before = True
    for log in logs:
        if log is chosen:
            before = False
        else:
            log.move(log.offset_at(time, inclusive=before))


def _forward(logs: Sequence[PageLog], limit: int) -> Iterator[Block]:
    """Yield the blocks after the position, at most ``limit`` bytes, and extend the logs."""
    heads = [
        (log.next_block()[0], number) for number, log in enumerate(logs) if log.end < log.length
    ]
    heapq.heapify(heads)
    for _count in range(MAX_BLOCKS):
        if not heads or limit <= 0:
            return
        time, number = heads[0]
        log = logs[number]
        begin, log.end = log.end, min(log.next_block()[1], log.end + limit)
        limit -= log.end - begin
        yield Block(number, begin, log.end, time)
        if log.end < log.length:
            heapq.heapreplace(heads, (log.next_block()[0], number))
        else:
            heapq.heappop(heads)


def _backward(logs: Sequence[PageLog], limit: int) -> Iterator[Block]:
    """Yield the blocks before the position, the last first; see ``_forward``."""
    heads = [(-log.block_before()[0], -number) for number, log in enumerate(logs) if log.begin > 0]
    heapq.heapify(heads)
    for _count in range(MAX_BLOCKS):
        if not heads or limit <= 0:
            return
        time, number = -heads[0][0], -heads[0][1]
        log = logs[number]
        end, log.begin = log.begin, max(log.block_before()[1], log.begin - limit)
        limit -= end - log.begin
        yield Block(number, log.begin, end, time)
        if log.begin > 0:
            heapq.heapreplace(heads, (-log.block_before()[0], -number))
        else:
            heapq.heappop(heads)


def _read(reader: LogReader, log: PageLog, *, backward: bool) -> None:
    """Read the bytes of one log; the page ends where bytes are missing, also if it is backward."""
    begin, end = log.begin, log.end
    if begin == end:
        return
    before = min(begin, 1)
    try:
        chunk, _length = reader.read(log.key, begin - before, end - begin + before)
        data = chunk.data if chunk.offset == begin - before else b""
    except FileNotFoundError:
        data = b""
    log.at_line, log.data = before == 0 or data[:1] == b"\n", data[before:]
    if backward and len(log.data) < end - begin:
        log.begin, log.data = end, b""
    log.end = log.begin + len(log.data)


def _available(logs: Sequence[PageLog], blocks: Sequence[Block]) -> list[Block]:
    """Return the blocks whose bytes could be read."""
    found = []
    for block in blocks:
        log = logs[block.log]
        end = min(block.end, log.end)
        if log.begin <= block.begin < end:
            found.append(block._replace(end=end))
    return found
