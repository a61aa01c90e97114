"""Search a log by pieces, forward and backward, line by line, with offsets in bytes.

Whole lines are given to the pattern, so a match across two pieces or two segments is found. A line
longer than ``LONGEST_LINE`` is searched in parts that overlap by ``OVERLAP``: only there a match
longer than that can be missed or told too short, and, backward, matches that touch each other for
longer than that can be told from another beginning. At most ``LONGEST_LINE`` and two of the largest
pieces are held at a time. Knows neither where the bytes come from nor how long it may take.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

#: Bytes of the log from an offset, at most so many; fewer only at its end.
Read = Callable[[int, int], bytes]

FIRST_PIECE, LARGEST_PIECE = 256 << 10, 4 << 20
#: By how much each piece is larger than the last.
GROWTH = 4
LONGEST_LINE = 1 << 20
OVERLAP = 64 << 10
#: Bytes before a part of a line that tell the pattern what is no beginning of a line or a word.
CONTEXT = 4
#: Characters of a line that are shown, and those of them before a match far inside it.
SHOWN, BEFORE = 2000, 200


@dataclass(frozen=True)
class Hit:
    """One match; all offsets in bytes of the log.

    ``line_offset`` of a line longer than ``LONGEST_LINE`` may be where the search met it.
    """

    line_offset: int
    offset: int
    length: int
    text: str


class Found(NamedTuple):
    """What one step found, in the direction of the search; ``reached``: all up to there is done."""

    hits: list[Hit]
    reached: int
    scanned: int


def forward(read: Read, pattern: Any, begin: int, end: int, most: int) -> Iterator[Found]:
    """Matches that begin in ``begin``..``end``, at most ``most``."""
    window, line = _line_before(read, begin)
    base, at, size = begin - len(window), begin, FIRST_PIECE
    place = begin
    while at < end and most > 0:
        data = read(at, min(size, end - at))
        size = min(size * GROWTH, LARGEST_PIECE)
        window += data
        at += len(data)
        last = at >= end or not data
        if last:
            at = end
        whole, until = _whole_lines(window, last=last)
        hits, place = [], max(place, base)
        for match in pattern.finditer(window, place - base, whole):
            low, high = match.span()
            if low >= until:
                break
            if low == high:
                continue
            place = base + high
            hits.append(_hit(window, base, low, high, line))
            if len(hits) >= most:
                break
        most -= len(hits)
        yield Found(hits, place if most <= 0 else max(place, base + until), len(data))
        place = max(place, base + until)
        if until and window[until - 1 : until] == b"\n":
            line = base + until
        else:
            until = max(0, until - CONTEXT)
        window, base = window[until:], base + until


def _whole_lines(window: bytes, *, last: bool) -> tuple[int, int]:
    """How far to search, and how far that is final: matches that begin later wait for more."""
    if last:
        return len(window), len(window)
    cut = window.rfind(b"\n") + 1
    if cut or len(window) < LONGEST_LINE:
        return cut, cut
    return len(window), len(window) - OVERLAP


def _line_before(read: Read, begin: int) -> tuple[bytes, int]:
    """The part before ``begin`` of the line that it is in, and where that line begins."""
    before, low, size = b"", begin, OVERLAP
    while low > 0 and b"\n" not in before and len(before) < LONGEST_LINE:
        step = min(size, low)
        before, low = read(low - step, step) + before, low - step
        size *= 4
    head = before.rfind(b"\n") + 1
    return before[head:], low + head


def _line_behind(read: Read, begin: int) -> bytes:
    """The rest of the line that ``begin`` is in."""
    rest, size = b"", OVERLAP
    while b"\n" not in rest and len(rest) < LONGEST_LINE:
        data = read(begin + len(rest), size)
        if not data:
            return rest
        rest += data
        size *= 4
    return rest[: rest.find(b"\n") + 1] or rest


def backward(read: Read, pattern: Any, begin: int, most: int) -> Iterator[Found]:
    """Matches that begin before ``begin``, the last one first, at most ``most``."""
    window, base, limit, size = _line_behind(read, begin), begin, begin, FIRST_PIECE
    while base > 0 and most > 0:
        low = max(0, base - size)
        size = min(size * GROWTH, LARGEST_PIECE)
        data = read(low, base - low)
        window, base = data + window, low
        start = _first_line(window, base)
        if start is None:
            yield Found([], limit, len(data))
            continue
        whole = not start or window[start - 1 : start] == b"\n"
        kept: deque[tuple[int, int]] = deque(maxlen=most)
        # Where a line is cut into parts, a match that only ends behind the cut is the next part's.
        for match in pattern.finditer(window, start if whole else 0):
            if base + match.start() >= limit:
                break
            if match.end() > match.start() >= start:
                kept.append(match.span())
        hits = [_hit(window, base, *span, base + start) for span in reversed(kept)]
        most -= len(hits)
        limit = hits[-1].offset if most <= 0 else min(limit, base + start)
        yield Found(hits, limit, len(data))
        window = window[:start] if whole else window[: start + OVERLAP]


def _first_line(window: bytes, base: int) -> int | None:
    """Where the first whole line of the window begins; None: read more first."""
    if base == 0:
        return 0
    newline = window.find(b"\n")
    if 0 <= newline < len(window) - 1:
        return newline + 1
    return OVERLAP if len(window) > LONGEST_LINE else None


def _hit(window: bytes, base: int, low: int, high: int, line: int) -> Hit:
    """The match at ``low``..``high``; ``line``: where the line begins unless the window tells."""
    newline = window.rfind(b"\n", 0, low) + 1
    head = newline if newline else max(0, line - base)
    begin = head if low - head < SHOWN - BEFORE else low - BEFORE
    while begin > head and window[begin] & 0xC0 == 0x80:
        begin -= 1  # not into the middle of a character
    shown = window[begin : begin + 4 * SHOWN].partition(b"\n")[0]
    text = shown.decode("utf-8", "replace")[:SHOWN].rstrip("\r")
    return Hit(base + newline if newline else line, base + low, high - low, text)
