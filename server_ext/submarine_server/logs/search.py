"""Search a log in both directions, limited in time, in separate threads.

The pattern is matched against whole lines, so that matches across two pieces are found. Lines
longer than ``LONGEST_LINE`` are searched in parts that overlap by ``OVERLAP``; longer matches in
such lines may be missed or shortened. At most ``LONGEST_LINE`` bytes and two of the largest pieces
are in memory. Escape sequences are not part of the searched text: a colored word is a word.

Patterns use RE2: its time is linear in the text, its memory is limited, and it releases the GIL. A
pattern from a browser can neither hang a thread nor block the event loop. RE2 has no look-around
and no back-references.
"""

from __future__ import annotations

import bisect
import functools
import itertools
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import re2

from submarine_jobs.errors import ClusterError, UsageError
from submarine_jobs.logs import LogReader
from submarine_runtime.protocol import LogKey
from submarine_runtime.translation import _
from submarine_server.service import CallLimiter, JobService

#: Concurrent searches, and searches that may wait.
MAX_SEARCHES, MAX_WAITING = 4, 32
#: Seconds after which a search returns its position, from which the client can continue.
TIME_LIMIT = 20.0

_limiters: WeakKeyDictionary[JobService, CallLimiter] = WeakKeyDictionary()


def search_limiter(service: JobService) -> CallLimiter:
    """Return the limiter of the server's searches."""
    return _limiters.setdefault(service, CallLimiter(MAX_SEARCHES, MAX_WAITING))


@dataclass(frozen=True)
class SearchRequest:
    """A search. ``begin`` None starts at the beginning, or at the end if ``backward``.

    Attributes
    ----------
    pattern
        Result of ``compile_pattern``.
    begin
        Offset in bytes; None: the beginning of the log, or its end if ``backward``.
    backward
        Whether to search towards the beginning.
    most
        Maximum number of hits.
    """

    pattern: Any
    begin: int | None
    backward: bool
    most: int


@dataclass(frozen=True)
class SearchResult:
    """Result of a search: ``next`` is the offset to continue at, None at the end."""

    next: int | None
    scanned: int


def search_log(
    reader: LogReader,
    key: LogKey,
    request: SearchRequest,
    stop: threading.Event,
    emit: Callable[[Sequence[Hit]], None],
) -> SearchResult:
    """Search the current content of a log; blocks.

    Parameters
    ----------
    stop
        Set to end the search early.
    emit
        Receives hits in the direction of the search; may block.
    """
    until = time.monotonic() + TIME_LIMIT
    end = reader.length(key)
    begin = min(end if request.begin is None and request.backward else request.begin or 0, end)

    def read(offset: int, limit: int) -> bytes:
        return read_exactly(reader, key, offset, max(0, min(limit, end - offset)))

    if request.backward:
        steps = backward(read, request.pattern, begin, request.most)
    else:
        steps = forward(ReadAhead(read), request.pattern, begin, end, request.most)
    remaining, scanned, reached = request.most, 0, begin
    for found in steps:
        reached = found.reached
        scanned += found.scanned
        remaining -= len(found.hits)
        if found.hits:
            emit(found.hits)
        if remaining <= 0 or stop.is_set() or time.monotonic() > until:
            break
    over = reached <= 0 if request.backward else reached >= end
    return SearchResult(None if over else reached, scanned)


class ReadAhead:
    """Reads the next piece in a daemon thread while the current one is searched."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._next: tuple[int, Future[bytes]] | None = None

    def __call__(self, offset: int, limit: int) -> bytes:
        """See ``Read``."""
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


def read_exactly(reader: LogReader, key: LogKey, offset: int, limit: int) -> bytes:
    """Return these bytes of the log, from several reads if necessary.

    Raises
    ------
    ClusterError
        If bytes are missing, for example because a container died before it uploaded them.
    """
    parts: list[bytes] = []
    while limit > 0:
        data = reader.read_through(key, offset, limit)
        if not data:
            raise ClusterError(
                _("The log of {key} cannot be read from byte {offset} on now.").format(
                    key=key, offset=offset
                )
            )
        parts.append(data)
        offset += len(data)
        limit -= len(data)
    return b"".join(parts)


#: Reads at most a number of bytes from an offset; fewer only at the end.
Read = Callable[[int, int], bytes]

FIRST_PIECE, LARGEST_PIECE = 256 << 10, 4 << 20
#: Factor between the sizes of consecutive pieces.
GROWTH = 4
LONGEST_LINE = 1 << 20
OVERLAP = 64 << 10
#: Bytes kept before a part of a line, so that ``^`` and ``\b`` do not match at its start.
CONTEXT = 4
#: Characters of a line in a hit, and how many of them are before the match.
MAX_SHOWN, SHOWN_BEFORE = 2000, 200


@dataclass(frozen=True)
class Hit:
    """A match.

    Attributes
    ----------
    line_offset
        Offset of the line in bytes; may be inexact for lines longer than ``LONGEST_LINE``.
    offset, length
        Offset and length of the match in bytes.
    text
        Part of the line around the match.
    """

    line_offset: int
    offset: int
    length: int
    text: str


class SearchStep(NamedTuple):
    """Hits of one step in the direction of the search, which has come to ``reached``."""

    hits: list[Hit]
    reached: int
    scanned: int


def forward(read: Read, pattern: Any, begin: int, end: int, most: int) -> Iterator[SearchStep]:
    """Yield at most ``most`` matches that start between ``begin`` and ``end``.

    Parameters
    ----------
    begin, end
        Offsets in bytes.
    """
    place = begin
    for window in _windows(read, begin, end):
        hits = list(itertools.islice(_hits(pattern, window, place), most))
        most -= len(hits)
        if hits:
            place = hits[-1].offset + hits[-1].length
        if most > 0:
            place = max(place, window.base + window.final)
        yield SearchStep(hits, place, window.added)
        if most <= 0:
            return


class Window(NamedTuple):
    """A part of the log that is searched at once.

    Attributes
    ----------
    text
        Its bytes, from the start of a line or with the end of the part before.
    base
        Offset of ``text`` in the log.
    line
        Offset of the line in which ``text`` starts.
    whole
        Length of ``text`` that is searched: up to the end of its last whole line.
    final
        Length of ``text`` in which matches are final. A match that starts behind it is found again
        in the next window, which may have more of it.
    added
        Number of bytes that were not in the window before.
    """

    text: bytes
    base: int
    line: int
    whole: int
    final: int
    added: int


def _windows(read: Read, begin: int, end: int) -> Iterator[Window]:
    """Read the log from ``begin`` to ``end`` in windows."""
    rest, line = _line_before(read, begin)
    base, at, size = begin - len(rest), begin, FIRST_PIECE
    while at < end:
        data = read(at, min(size, end - at))
        size = min(size * GROWTH, LARGEST_PIECE)
        at = at + len(data) if data else end
        for text, offset, added, last in _texts(rest, base, data, last=at >= end):
            whole, final = _whole_lines(text, last=last)
            yield Window(text, offset, line, whole, final, added)
            kept = max(0, final - CONTEXT)
            if text.endswith(b"\n", 0, final):
                line, kept = offset + final, final
            rest, base = text[kept:], offset + kept


def _hits(pattern: Any, window: Window, place: int) -> Iterator[Hit]:
    """Yield the matches from the offset ``place`` that are final."""
    # Reading the fields for each match would take a third longer.
    text, base, line, whole, final, _added = window
    for match in pattern.finditer(text, place - base, whole):
        low, high = match.span()
        if low >= final:
            return
        if low < high:
            yield _hit(text, base, low, high, line)


def _texts(
    rest: bytes, base: int, data: bytes, *, last: bool
) -> Iterator[tuple[bytes, int, int, bool]]:
    """Yield texts to search: bytes, offset, number of new bytes, whether the log ends there.

    The line that continues from the piece before is a text of its own, so that the piece is not
    copied.
    """
    joined = data.find(b"\n") + 1 if rest else 0
    if joined:
        yield rest + data[:joined], base, joined, False
        yield data, base + len(rest), len(data) - joined, last
    else:
        yield rest + data, base, len(data), last


def _whole_lines(window: bytes, *, last: bool) -> tuple[int, int]:
    """Return how far to search, and up to where the result is final."""
    if last:
        return len(window), len(window)
    cut = window.rfind(b"\n") + 1
    if cut or len(window) < LONGEST_LINE:
        return cut, cut
    return len(window), len(window) - OVERLAP


def _line_before(read: Read, begin: int) -> tuple[bytes, int]:
    """Return the part before ``begin`` of its line, and where that line starts."""
    before, low, size = b"", begin, OVERLAP
    while low > 0 and b"\n" not in before and len(before) < LONGEST_LINE:
        step = min(size, low)
        before, low = read(low - step, step) + before, low - step
        size *= 4
    head = before.rfind(b"\n") + 1
    return before[head:], low + head


def _line_behind(read: Read, begin: int) -> bytes:
    """Return the rest of the line at ``begin``."""
    rest, size = b"", OVERLAP
    while b"\n" not in rest and len(rest) < LONGEST_LINE:
        data = read(begin + len(rest), size)
        if not data:
            return rest
        rest += data
        size *= 4
    return rest[: rest.find(b"\n") + 1] or rest


def backward(read: Read, pattern: Any, begin: int, most: int) -> Iterator[SearchStep]:
    """Yield at most ``most`` matches that start before ``begin``, the last one first.

    Parameters
    ----------
    begin
        Offset in bytes.
    """
    window, base, limit, size = _line_behind(read, begin), begin, begin, FIRST_PIECE
    while base > 0 and most > 0:
        low = max(0, base - size)
        size = min(size * GROWTH, LARGEST_PIECE)
        data = read(low, base - low)
        window, base = data + window, low
        start = _first_line(window, base)
        if start is None:
            yield SearchStep([], limit, len(data))
            continue
        whole = not start or window[start - 1 : start] == b"\n"
        kept: deque[tuple[int, int]] = deque(maxlen=most)
        # If a line is split, a match that ends after the split belongs to the next part.
        for match in pattern.finditer(window, start if whole else 0):
            if base + match.start() >= limit:
                break
            if match.end() > match.start() >= start:
                kept.append(match.span())
        hits = [_hit(window, base, *span, base + start) for span in reversed(kept)]
        most -= len(hits)
        limit = hits[-1].offset if most <= 0 else min(limit, base + start)
        yield SearchStep(hits, limit, len(data))
        window = window[:start] if whole else window[: start + OVERLAP]


def _first_line(window: bytes, base: int) -> int | None:
    """Return the start of the first whole line of the window; None if more must be read."""
    if base == 0:
        return 0
    newline = window.find(b"\n")
    if 0 <= newline < len(window) - 1:
        return newline + 1
    return OVERLAP if len(window) > LONGEST_LINE else None


def _hit(window: bytes, base: int, low: int, high: int, line: int) -> Hit:
    """Create the hit at ``low``..``high``; ``line``: start of a line before the window."""
    newline = window.rfind(b"\n", 0, low) + 1
    head = newline if newline else max(0, line - base)
    begin = head if low - head < MAX_SHOWN - SHOWN_BEFORE else low - SHOWN_BEFORE
    while begin > head and window[begin] & 0xC0 == 0x80:
        begin -= 1  # do not split a character
    shown = window[begin : begin + 4 * MAX_SHOWN].partition(b"\n")[0]
    text = shown.decode("utf-8", "replace")[:MAX_SHOWN].rstrip("\r")
    return Hit(base + newline if newline else line, base + low, high - low, text)


#: Maximum length of a pattern.
MAX_PATTERN = 1000
#: Pattern of "next error", case-sensitive: Python exceptions, log levels, the kernel, CUDA, NCCL
#: and the JVM.
ERROR_PATTERN = (
    r"Traceback \(most recent call last\)"
    r"|\b[A-Z][A-Za-z]*(?:Error|Exception)\b"
    r"|\b(?:ERROR|FATAL|CRITICAL|Error|Exception|Killed|Aborted)\b"
    r"|\b(?:CUDA|NCCL|cuDNN) error\b"
    r"|\bout of memory\b|\bOut of memory\b"
    r"|\bSegmentation fault\b|\bcore dumped\b"
)
#: Memory limit of one pattern in bytes.
_MEMORY = 16 << 20


@functools.lru_cache(maxsize=64)
def compile_pattern(text: str, *, regex: bool, case: bool) -> Any:
    """Compile the pattern that finds ``text`` within lines.

    Parameters
    ----------
    regex
        ``text`` is a regular expression in RE2's syntax; otherwise it is literal.
    case
        Match case.

    Raises
    ------
    UsageError
        If it is empty, too long or invalid.
    """
    if not text or len(text) > MAX_PATTERN or "\n" in text:
        raise UsageError(
            _("The search text must be one line of 1 to 1,000 characters."), _("Give `q`.")
        )
    options = re2.Options()
    options.never_nl = True  # a match does not span lines
    options.log_errors = False
    options.max_mem = _MEMORY
    flags = "(?m)" if case else "(?mi)"
    try:
        pattern = re2.compile(flags + (text if regex else re2.escape(text)), options)
        return pattern if _NAMES_ESCAPE.search(text) else VisiblePattern(pattern)
    except re2.error as exc:
        message = exc.args[0] if exc.args else ""
        reason = message.decode("utf-8", "replace") if isinstance(message, bytes) else str(message)
        raise UsageError(
            _("{text!r} is not a regular expression: {reason}.").format(
                text=text[:80], reason=reason[:200]
            ),
            _("Look-around and back-references are not supported (RE2's syntax)."),
        ) from None
    except UnicodeEncodeError:
        raise UsageError(_("The search text is not valid Unicode.")) from None


#: Control sequences, such as colors; and all sequences, also titles, links and character sets.
_CONTROL = re.compile(rb"\x1b\[[0-?]*[ -/]*[@-~]")
_SEQUENCE = re.compile(_CONTROL.pattern + rb"|\x1b\][^\x07\x1b\n]*(?:\x07|\x1b\\)|\x1b[ -/]*[0-~]")
#: A pattern that names the escape character is matched with the bytes of the log.
_NAMES_ESCAPE = re.compile(r"\x1b|\\x(?:1b|\{0*1b\})|\\0?33", re.IGNORECASE)
#: Bytes from which sequences are removed in one step, which holds the GIL; and maximum number of
#: different sequences that are removed one after the other, which is the fastest way for a few.
_STEP, _MAX_DIFFERENT = 256 << 10, 16


class Span(NamedTuple):
    """Start and end of a match, with the methods of a match object."""

    low: int
    high: int

    def span(self) -> tuple[int, int]:
        """Return start and end."""
        return self.low, self.high

    def start(self) -> int:
        """Return the start."""
        return self.low

    def end(self) -> int:
        """Return the end."""
        return self.high


class VisiblePattern:
    """Matches a pattern with the text that a terminal shows, without escape sequences.

    Spans are positions in the bytes; a sequence within a match belongs to it. In text without
    sequences this costs the search for one byte.
    """

    def __init__(self, pattern: Any) -> None:
        self._pattern = pattern

    def finditer(
        self, window: bytes, begin: int = 0, end: int | None = None
    ) -> Iterator[re.Match[bytes] | Span]:
        """Return the matches between ``begin`` and ``end``, like a compiled pattern."""
        stop = len(window) if end is None else end
        if window.find(b"\x1b", 0, stop) < 0:
            return self._pattern.finditer(window, begin, stop)  # type: ignore[no-any-return]
        return self._visible_matches(window, begin, stop)

    def _visible_matches(self, window: bytes, begin: int, end: int) -> Iterator[Span]:
        before = visible_text(window[:begin])
        text = before + visible_text(window[begin:end])
        positions = Positions(window, text)
        for match in self._pattern.finditer(text, len(before)):
            low, high = match.span()
            if high > low:
                yield Span(positions.of(low), positions.of(high - 1) + 1)


def visible_text(window: bytes) -> bytes:
    """Remove the escape sequences."""
    known: list[bytes] = []
    parts, at = [], 0
    while at < len(window):
        cut = window.find(b"\n", at + _STEP) + 1 or len(window)
        parts.append(_without_sequences(window[at:cut], known))
        at = cut
    return b"".join(parts)


def _without_sequences(text: bytes, known: list[bytes]) -> bytes:
    """Remove the sequences of a part; ``known`` are the different ones that were found so far."""
    for sequence in known:
        text = text.replace(sequence, b"")
    while (at := text.find(b"\x1b")) >= 0:
        found = _CONTROL.match(text, at)
        if found is None or len(known) >= _MAX_DIFFERENT:
            return _SEQUENCE.sub(b"", text)
        known.append(found.group())
        text = text.replace(known[-1], b"")
    return text


class Positions:
    """Converts positions in the visible text of a window, in ascending order, to its bytes.

    Both have the same lines, so that a position is searched in its line only.
    """

    def __init__(self, window: bytes, text: bytes) -> None:
        self._window, self._text = window, text
        #: Start of the current line in the bytes and in the visible text.
        self._line = self._text_line = self._end = 0
        #: Positions in the visible line at which sequences were removed, and the removed bytes.
        self._places: list[int] | None = None
        self._removed: list[int] = []

    def of(self, place: int) -> int:
        """Return the position of the byte at ``place`` of the visible text."""
        line = self._text.rfind(b"\n", 0, place) + 1
        if self._places is None or line > self._text_line:
            for _line in range(self._text.count(b"\n", self._text_line, line)):
                self._line = self._window.find(b"\n", self._line) + 1
            self._text_line = line
            self._places = self._read_line()
        inside = place - self._text_line
        removed = self._removed[bisect.bisect_right(self._places, inside)]
        return min(self._line + inside + removed, self._end)

    def _read_line(self) -> list[int]:
        end = self._window.find(b"\n", self._line)
        self._end = len(self._window) if end < 0 else end
        places, removed = [], 0
        self._removed = [0]
        for match in _SEQUENCE.finditer(self._window, self._line, self._end):
            places.append(match.start() - self._line - removed)
            removed += match.end() - match.start()
            self._removed.append(removed)
        return places
