"""The buffered end of a log: pieces in any order, and the text that is passed on as it came."""

from __future__ import annotations

import base64
import random

from submarine_jobs.logs import GrowingLog
from submarine_runtime.protocol import LogCursor, LogKey, LogLine

KEY = LogKey("worker:0", "e1-a1", "stdout")
KEEP = 64


def line(begin: int, data: bytes) -> LogLine:
    return LogLine(KEY, begin, begin + len(data), base64.b64encode(data).decode())


def test_the_text_of_the_newest_piece_is_passed_on() -> None:
    known = GrowingLog(KEY, LogCursor())
    assert known.encoded(0) == ""
    assert known.add(line(0, b"abc"), KEEP)
    assert known.encoded(0) == line(0, b"abc").data
    assert known.add(line(3, b"de"), KEEP)
    assert known.encoded(0) == ""
    assert known.encoded(3) == line(3, b"de").data
    # A part of it was known: what is new must be cut.
    assert known.add(line(4, b"ef"), KEEP)
    assert [known.encoded(begin) for begin in range(7)] == [""] * 7
    assert known.kept(0, 99) == b"abcdef"


def test_a_length_without_bytes_ends_the_text() -> None:
    known = GrowingLog(KEY, LogCursor())
    known.add(line(0, b"abc"), KEEP)
    assert known.grow(9)
    assert known.encoded(0) == ""
    assert known.kept(0, 9) == b""
    assert known.kept_from == known.end == 9


def test_a_large_piece_is_not_kept_twice() -> None:
    known = GrowingLog(KEY, LogCursor())
    known.add(line(0, b"x" * 200), KEEP)
    assert known.encoded(0) == ""
    assert len(known.kept(known.kept_from, 999)) <= 2 * KEEP


def test_pieces_in_any_order_keep_the_end() -> None:
    chance = random.Random(3)
    whole = bytes(chance.randrange(256) for _ in range(500))
    known, end = GrowingLog(KEY, LogCursor()), 0
    for _ in range(300):
        begin = max(0, min(490, end + chance.randint(-30, 12)))
        piece = whole[begin : begin + chance.randint(1, 20)]
        assert known.add(line(begin, piece), KEEP) == (begin + len(piece) > end)
        end = max(end, begin + len(piece))
        assert known.end == end
        assert known.kept(known.kept_from, 999) == whole[known.kept_from : end]
        if text := known.encoded(begin):
            assert base64.b64decode(text) == whole[begin:end]
