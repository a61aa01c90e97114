"""Terminal output becomes what a person would have seen."""

from __future__ import annotations

import gc
import html
import re
import time

import pytest
from hypothesis import given, strategies as st

from submarine_jobs.text import ansi

ESCAPES = st.sampled_from(
    [
        "\x1b[31m",
        "\x1b[0m",
        "\x1b[38;5;208m",
        "\x1b[38;2;1;2;3m",
        "\x1b[K",
        "\x1b[2K",
        "\r",
        "\x08",
        "\x1b]8;;http://x\x07",
        "\x1b]0;title",
        "\x1b[",
        "\x1b",
        "\x9b",
        "\x1bP",
        "\n",
        "<b>",
        "&",
    ]
)
TERMINAL = st.lists(st.one_of(ESCAPES, st.text(max_size=20))).map("".join)


def test_progress_bar_takes_one_line() -> None:
    bar = "".join(f"\r{done}/10 {'#' * done}" for done in range(11)) + "\nready\n"
    assert ansi.to_text(bar) == "10/10 ##########\nready"


def test_backspaces_write_over() -> None:
    assert ansi.to_text("loss 0.9\b\b\b0.7") == "loss 0.7"
    assert ansi.to_text("\b\b\bx") == "x"


def test_shorter_line_after_return_leaves_the_rest_as_a_terminal_does() -> None:
    assert ansi.to_text("abcdef\rxy") == "xycdef"
    assert ansi.to_text("abcdef\rxy\x1b[K") == "xy"
    assert ansi.to_text("abcdef\x1b[2K\rxy") == "xy"


@pytest.mark.parametrize(
    ("sequence", "css"),
    [
        ("\x1b[31m", "color:#e5534b"),
        ("\x1b[91m", "color:#ff7b72"),
        ("\x1b[42m", "background-color:#3fb950"),
        ("\x1b[1;3;4m", "font-weight:bold;font-style:italic;text-decoration:underline"),
        ("\x1b[38;5;208m", "color:#ff8700"),
        ("\x1b[38;5;244m", "color:#808080"),
        ("\x1b[38;2;255;100;200m", "color:#ff64c8"),
        ("\x1b[38:2::255:100:200m", "color:#ff64c8"),
        ("\x1b[48;2;1;2;3m", "background-color:#010203"),
        ("\x1b[7m", "color:#1b1f24;background-color:#d4d4d4"),
        ("\x1b[9;2m", "opacity:.7;text-decoration:line-through"),
        ("\x1b[38;2;999;0;0m", ""),
        ("\x1b[5;77m", ""),
    ],
)
def test_colours(sequence: str, css: str) -> None:
    expected = f'<span style="{css}">x</span>y' if css else "xy"
    assert ansi.to_html(f"{sequence}x\x1b[0my") == expected


@pytest.mark.parametrize(
    "sequence",
    [
        "\x1b[2J",
        "\x1b[H",
        "\x1b[10;5H",
        "\x1b[?25l",
        "\x1b]0;title\x07",
        "\x1b]8;;http://x\x1b\\",
        "\x1bPq#0\x1b\\",
        "\x1b(B",
        "\x1bc",
        "\x1b7",
        "\x9b5A",
        "\x1b[6n",
    ],
)
def test_other_escapes_vanish(sequence: str) -> None:
    assert ansi.to_text(f"a{sequence}b") == "ab"
    assert ansi.to_html(f"a{sequence}b") == "ab"


def test_an_unfinished_string_sequence_hides_at_most_its_own_line() -> None:
    assert ansi.to_text("a\x1b]0;never closed\nb") == "a\nb"


def test_last_lines_and_width() -> None:
    assert ansi.to_text("1\n2\n3\n\n", lines=2) == "2\n3"
    assert ansi.to_text("abcdef", width=3) == "ab…"
    assert ansi.to_html("<" * 50, width=3) == "&lt;&lt;…"


@given(TERMINAL)
def test_html_holds_only_spans_and_agrees_with_text(text: str) -> None:
    shown = ansi.to_html(text, width=10_000)
    without = re.sub(r'<span style="[-a-z0-9:;#. ]*">|</span>', "", shown)
    assert "<" not in without
    assert ">" not in without
    assert '"' not in without
    lines = [line.rstrip() for line in html.unescape(without).split("\n")]
    assert "\n".join(lines).rstrip("\n") == ansi.to_text(text)


@given(TERMINAL)
def test_no_control_survives(text: str) -> None:
    assert not re.search(
        "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", ansi.to_text(text)
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece",
    [
        "\x1b",
        "\x1b[",
        "\x1b]",
        "\x1b[38;5;",
        "\x08",
        "\r",
        "x\r",
        "\x1b[2K",
        "\x1b[K",
        "\x1b[1m",
        "\n",
        "x" * 500 + "\r",
        "\x1b[31;",
        "x\x1b[31m",
        "\x9d",
    ],
)
def test_time_is_linear(piece: str) -> None:
    """Sixteen times the text; 256 times the work would be quadratic.

    This thread's own time on the processor is measured: a busy machine does not change it. Nor do
    the objects of all other tests, which Python would walk through whenever many new ones are made.
    """

    def seconds(length: int) -> float:
        text = piece * (length // len(piece))
        best = 60.0
        for _ in range(3):
            start = time.thread_time()
            ansi.to_html(text)
            best = min(best, time.thread_time() - start)
        return best

    gc.disable()
    try:
        short, long = seconds(3_000), seconds(48_000)
    finally:
        gc.enable()
    assert long < 80 * short + 0.02
