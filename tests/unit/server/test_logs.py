"""Logs on the server's side: search, patterns, reading from segments, names that are paths."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Iterator
from typing import Any

import pytest

from submarine_jobs.errors import ClusterError, UsageError
from submarine_jobs.logs import log_key, parsed_lengths
from submarine_server.logs import ERROR_PATTERN, Hit, compile_pattern, search
from submarine_server.logs.search import ReadAhead, SearchStep, backward, forward


class Text:
    """A log in memory that counts what is read of it."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.read_bytes = 0

    def __call__(self, offset: int, limit: int) -> bytes:
        found = self.data[offset : offset + limit]
        self.read_bytes += len(found)
        return found


def hits(steps: Iterator[SearchStep]) -> list[Hit]:
    return [hit for found in steps for hit in found.hits]


def pattern(text: str, *, regex: bool = True, case: bool = True) -> Any:
    return compile_pattern(text, regex=regex, case=case)


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "FIRST_PIECE", 7)
    monkeypatch.setattr(search, "LARGEST_PIECE", 64)
    monkeypatch.setattr(search, "OVERLAP", 32)
    monkeypatch.setattr(search, "LONGEST_LINE", 200)


WORDS = ["loss", "Error", "ä", "épée", "x" * 30, "", "ERROR 7", "\r", "日本語", "error"]


def made_up(seed: int) -> bytes:
    chance = random.Random(seed)
    lines = [" ".join(chance.choices(WORDS, k=chance.randint(0, 5))) for _ in range(60)]
    text = "\n".join(lines).encode()
    return text + (b"\n" if seed % 2 else b"\xff\xfe tail error")


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("expression", ["[Ee]rror", "ä|é", "(?i)error \\d", "^.*loss", "語$", "x+"])
def test_search_in_pieces_finds_what_a_search_of_the_whole_finds(
    seed: int, expression: str
) -> None:
    data = made_up(seed)
    expected = []
    begin = 0
    for line in data.split(b"\n"):
        matches = [match for match in re.finditer(expression.encode(), line) if match.group()]
        expected += [(begin, begin + match.start(), len(match.group())) for match in matches]
        begin += len(line) + 1
    found = hits(forward(Text(data), pattern(expression), 0, len(data), 10_000))
    assert [(hit.line_offset, hit.offset, hit.length) for hit in found] == expected
    for hit in found:
        line = data[hit.line_offset :].split(b"\n")[0]
        assert hit.text == line.decode("utf-8", "replace").rstrip("\r")
    back = hits(backward(Text(data), pattern(expression), len(data), 10_000))
    assert [(hit.line_offset, hit.offset, hit.length) for hit in back] == expected[::-1]
    for place in range(0, len(data), 37):
        ahead = hits(forward(Text(data), pattern(expression), place, len(data), 1))
        later = [item for item in expected if item[1] >= place]
        if ahead and expression in ("[Ee]rror", "ä|é"):
            assert (ahead[0].line_offset, ahead[0].offset, ahead[0].length) == later[0]
        behind = hits(backward(Text(data), pattern(expression), place, 1))
        before = [item for item in expected if item[1] < place]
        assert [(h.line_offset, h.offset, h.length) for h in behind] == before[-1:]


@pytest.mark.usefixtures("small_pieces")
def test_next_and_previous_walk_over_every_hit() -> None:
    data = made_up(3)
    every = hits(forward(Text(data), pattern("error", case=False), 0, len(data), 999))
    place, walked = 0, []
    while found := hits(forward(Text(data), pattern("error", case=False), place, len(data), 1)):
        walked += found
        place = found[0].offset + found[0].length
    assert walked == every
    place, walked = len(data), []
    while found := hits(backward(Text(data), pattern("error", case=False), place, 1)):
        walked += found
        place = found[0].offset
    assert walked == every[::-1]


@pytest.mark.usefixtures("small_pieces")
def test_a_line_longer_than_the_longest_is_searched_all_the_same() -> None:
    line = b"first\n" + b"\r50% |##  |" * 90 + b"NaN loss" + b"\r99% |### |" * 90 + b"\nlast NaN\n"
    offsets = [match.start() for match in re.finditer(b"NaN", line)]
    found = hits(forward(Text(line), pattern("NaN"), 0, len(line), 99))
    assert [hit.offset for hit in found] == offsets
    assert found[0].line_offset == 6
    assert "NaN loss" in found[0].text
    back = hits(backward(Text(line), pattern("NaN"), len(line), 99))
    assert [hit.offset for hit in back] == offsets[::-1]


PIECES = ["ab", "a", "b", " ", "abab", "é", "日本", "\r"]
ANCHORED = [
    "ab",
    "x+",
    r"\bab\b",
    "^ab?",
    "ab$",
    "[ab]b",
    "é|日本",
    "a b|b a",
    "x{3,}",
    r"\Bx",
    ".x$",
]


def with_long_lines(seed: int) -> bytes:
    """Lines of up to eight times the longest; what is found in them is shorter than the overlap."""
    chance = random.Random(seed)
    lines = []
    for _ in range(chance.randint(1, 6)):
        length, line = chance.choice([0, 3, 30, 190, 199, 200, 201, 260, 700, 1600]), ""
        while len(line.encode()) < length:
            line += chance.choice([*PIECES, "x" * chance.randint(1, 20) + "."])
        lines.append(line)
    return "\n".join(lines).encode() + b"\n" * chance.randint(0, 1)


@pytest.mark.slow
@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("seed", range(20))
def test_lines_searched_in_parts_hold_what_they_hold_as_a_whole(seed: int) -> None:
    data = with_long_lines(seed)
    for expression in ANCHORED:
        wanted = pattern(expression)
        spans = [match.span() for match in wanted.finditer(data) if match.group()]
        found = hits(forward(Text(data), wanted, 0, len(data), 1 << 20))
        assert [(hit.offset, hit.offset + hit.length) for hit in found] == spans, expression
        back = hits(backward(Text(data), wanted, len(data), 1 << 20))
        assert [(hit.offset, hit.offset + hit.length) for hit in back] == spans[::-1], expression
        # Some at a time, going on where the last answer ended, finds the same.
        assert by_some(data, wanted, 0) == spans, expression
        assert by_some(data, wanted, len(data), back=True) == spans[::-1], expression


def by_some(data: bytes, wanted: Any, place: int, *, back: bool = False) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    while place > 0 if back else place < len(data):
        steps = (
            backward(Text(data), wanted, place, 3)
            if back
            else forward(Text(data), wanted, place, len(data), 3)
        )
        before = place
        for step in steps:
            spans += [(hit.offset, hit.offset + hit.length) for hit in step.hits]
            place = step.reached
        assert place < before if back else place > before
    return spans


@pytest.mark.parametrize("line", [b"x" * 79, b"\n" * 79, b"x" * (search.LONGEST_LINE - 9) + b"\n"])
def test_a_search_holds_a_bounded_part_of_the_log(line: bytes) -> None:
    """Of a line without an end as of any other."""
    data = line * ((24 << 20) // len(line)) + b"needle"
    bound = search.LONGEST_LINE + 2 * search.LARGEST_PIECE
    held: list[int] = []

    class Measured:
        def finditer(self, window: bytes, *place: int) -> Any:
            held.append(len(window))
            return pattern("needle").finditer(window, *place)

    for steps in (
        forward(Text(data), Measured(), 0, len(data), 9),
        backward(Text(data), Measured(), len(data), 9),
    ):
        assert [hit.offset for hit in hits(steps)] == [len(data) - 6]
    assert max(held) <= bound


def test_a_long_line_is_shown_around_its_match() -> None:
    line = "é".encode() * 5000 + b"here" + b"y" * 5000
    (hit,) = hits(forward(Text(line), pattern("here"), 0, len(line), 5))
    assert (hit.line_offset, hit.offset) == (0, 10_000)
    assert len(hit.text) <= 2000
    assert "here" in hit.text
    assert "\ufffd" not in hit.text


def test_the_first_hits_come_before_the_rest_is_read() -> None:
    text = Text(b"needle\n" + b"hay\n" * 2_000_000)
    first = next(step for step in forward(text, pattern("needle"), 0, len(text.data), 9))
    assert first.hits[0].offset == 0
    assert text.read_bytes <= search.FIRST_PIECE
    text = Text(b"hay\n" * 2_000_000 + b"needle\n")
    first = next(step for step in backward(text, pattern("needle"), len(text.data), 9))
    assert first.hits[0].offset == 8_000_000
    assert text.read_bytes <= search.FIRST_PIECE


def test_a_pattern_that_would_hang_others_takes_no_time() -> None:
    data = b"a" * 900_000 + b"!\n"
    began = time.thread_time()
    assert hits(forward(Text(data), pattern("(a+)+$"), 0, len(data), 9)) == []
    assert time.thread_time() - began < 5


@pytest.mark.parametrize("text", ["", "x" * 1001, "a\nb", "(", "(?=a)", r"(a)\1", "a{1000}{1000}"])
def test_what_is_no_pattern_is_refused_in_words(text: str) -> None:
    with pytest.raises(UsageError) as error:
        compile_pattern(text, regex=True, case=True)
    assert len(error.value.message) < 400


def test_a_lone_surrogate_is_refused() -> None:
    with pytest.raises(UsageError, match="valid Unicode"):
        compile_pattern("\ud800", regex=False, case=True)


def test_a_literal_is_taken_as_it_stands() -> None:
    data = "a.c abc A.C\nä.c Ä.C\n".encode()
    literal = compile_pattern("a.c", regex=False, case=True)
    assert [hit.offset for hit in hits(forward(Text(data), literal, 0, len(data), 9))] == [0]
    either = compile_pattern("Ä.c", regex=False, case=False)
    assert [hit.offset for hit in hits(forward(Text(data), either, 0, len(data), 9))] == [12, 17]


ERROR_LINES = [
    "Traceback (most recent call last):",
    "ValueError: no",
    "tensorflow.python.framework.errors_impl.ResourceExhaustedError: OOM",
    "RuntimeError: CUDA out of memory. Tried to allocate 2 GiB",
    "java.lang.NullPointerException",
    "[2026-11-22] ERROR trainer: lost",
    "FATAL: could not open",
    "Killed",
    "NCCL error in: ../nccl.cpp",
    "Segmentation fault (service dumped)",
]
CALM_LINES = ["error_rate=0.1 loss 0.2", "no errors so far", "killed 0 processes", "mean_error 3"]


def test_next_error_finds_errors_and_no_metrics() -> None:
    errors = pattern(ERROR_PATTERN)
    assert [line for line in ERROR_LINES if not list(errors.finditer(line.encode()))] == []
    assert [line for line in CALM_LINES if list(errors.finditer(line.encode()))] == []


COLOURED = [
    b"\x1b[31mERROR\x1b[0m trainer: lost\n",
    b"\x1b[1mER\x1b[0;31mROR\x1b[m\n",
    b"\x1b[38;5;196mValue\x1b[1mError\x1b(B\x1b[m: no\n",
    b"\x1b]8;;http://here\x1b\\Traceback\x1b]8;;\x07 (most recent call last):\n",
]


@pytest.mark.parametrize("line", COLOURED)
def test_next_error_finds_a_coloured_one(line: bytes) -> None:
    errors = pattern(ERROR_PATTERN)
    data = b"\x1b[32mfine\x1b[0m\n" * 9 + line + b"\x1b[32merror_rate\x1b[0m=1\n" * 9
    for steps in (
        forward(Text(data), errors, 0, len(data), 9),
        backward(Text(data), errors, len(data), 9),
    ):
        (hit,) = hits(steps)
        assert hit.line_offset == data.index(line)
        found = data[hit.offset : hit.offset + hit.length]
        assert found[:1].isalpha()
        assert errors.finditer(found)
        assert search.visible_text(found).startswith((b"ERROR", b"ValueError", b"Traceback"))


SEQUENCES = [b"\x1b[31m", b"\x1b[0m", b"\x1b[38;5;%dm", b"\x1b[K", b"\x1b(B", b"\x1b]0;x\x07", b""]


def coloured(text: bytes, chance: random.Random) -> bytes:
    """Put sequences between the bytes of a text."""
    parts = []
    for byte in text:
        sequence = chance.choice([b"", b"", *SEQUENCES])
        parts.append(sequence % chance.randint(0, 255) if b"%" in sequence else sequence)
        parts.append(bytes([byte]))
    return b"".join(parts)


@pytest.mark.slow
@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("expression", ["[Ee]rror", "ä|é", "^.*loss", "\\bERROR\\b", "x$"])
def test_colours_change_no_match(
    seed: int, expression: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "LONGEST_LINE", 4000)
    monkeypatch.setattr(search, "_STEP", 20)
    plain = made_up(seed)
    data = coloured(plain, random.Random(seed))
    for begin_plain, begin in ((0, 0), (plain.index(b"\n"), data.index(b"\n"))):
        expected = hits(forward(Text(plain), pattern(expression), begin_plain, len(plain), 999))
        found = hits(forward(Text(data), pattern(expression), begin, len(data), 999))
        assert [matched(data, hit) for hit in found] == [matched(plain, hit) for hit in expected]
        assert [line_of(data, hit) for hit in found] == [line_of(plain, hit) for hit in expected]
        place, walked = begin, []
        while some := hits(forward(Text(data), pattern(expression), place, len(data), 1)):
            walked += some
            place = some[0].offset + some[0].length
        assert walked == found
    back = hits(backward(Text(data), pattern(expression), len(data), 999))
    everything = hits(forward(Text(data), pattern(expression), 0, len(data), 999))
    assert back == everything[::-1]


def matched(data: bytes, hit: Hit) -> bytes:
    return search.visible_text(data[hit.offset : hit.offset + hit.length])


def line_of(data: bytes, hit: Hit) -> int:
    assert data[hit.line_offset - 1 : hit.line_offset] in (b"", b"\n")
    return data.count(b"\n", 0, hit.offset)


@pytest.mark.parametrize("seed", range(8))
def test_malformed_sequences_leave_hits_in_their_lines(seed: int) -> None:
    chance = random.Random(seed)
    pieces = [b"\x1b", b"\x1b[", b"\x1b[3", b"\x1b]", b"31m", b"\x1b[0m", b"needle", b"\n", b" x"]
    data = b"".join(chance.choices(pieces, k=2000))
    found = hits(forward(Text(data), pattern("needle"), 0, len(data), 9999))
    assert found
    for hit in found:
        assert b"\n" not in data[hit.line_offset : hit.offset]
        assert b"\n" not in data[hit.offset : hit.offset + hit.length]


def test_a_pattern_that_names_the_escape_character_finds_it() -> None:
    data = b"plain\n\x1b[31mred\n"
    for text in ("\\x1b\\[31m", "\x1b\\[31m", "\\x{1B}.31m"):
        assert [hit.offset for hit in hits(forward(Text(data), pattern(text), 0, 99, 9))] == [6]


NO_LOGS = [
    ("../..", "e1-a1", "stdout"),
    ("worker:0/..", "e1-a1", "stdout"),
    ("worker:0", "../e1-a1", "stdout"),
    ("worker:0", "e1-a1/..", "stdout"),
    ("worker:0", "e1-a1", "../secret.json"),
    ("worker:0", "e1-a1", "samples"),
    ("worker:0\n", "e1-a1", "stdout"),
    ("worker:0", "e1-a1\n", "stdout"),
    ("worker:0\x00", "e1-a1", "stdout"),
    ("", "", ""),
]


@pytest.mark.parametrize("names", NO_LOGS)
def test_names_that_are_no_log_are_refused(names: tuple[str, str, str]) -> None:
    with pytest.raises(UsageError):
        log_key(*names)


def test_a_record_names_logs_only() -> None:
    lengths = {"worker:0/e1-a1/stdout": 3, "../../etc/passwd": 9, "worker:0/e1-a1/stderr": -1}
    assert {str(key): value for key, value in parsed_lengths(lengths).items()} == {
        "worker:0/e1-a1/stdout": 3
    }


@pytest.mark.slow
def test_reading_ahead_changes_nothing_but_the_time() -> None:
    text = Text(b"".join(b"%d loss\n" % number for number in range(1_200_000)))
    size = len(text.data)
    straight = list(forward(text, pattern("[0-9]*7777 loss$"), 0, size, 999))
    assert list(forward(ReadAhead(text), pattern("[0-9]*7777 loss$"), 0, size, 999)) == straight
    assert len(hits(iter(straight))) == 120


def test_what_cannot_be_read_ahead_is_said_when_it_is_its_turn() -> None:
    text = Text(b"needle\n" + b"hay\n" * 100_000)

    def read(offset: int, limit: int) -> bytes:
        if offset >= search.FIRST_PIECE:
            raise ClusterError("away")
        return text(offset, limit)

    steps = forward(ReadAhead(read), pattern("needle"), 0, len(text.data), 9)
    assert [hit.offset for hit in next(steps).hits] == [0]
    with pytest.raises(ClusterError, match="away"):
        next(steps)
