"""Output of paragraphs: logs, text, displays, limits."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from submarine_zeppelin.display import OutputBuffer
from submarine_zeppelin.interface import Kind, Message, Output

LIMIT = 10_000


class RecordedOutput(Output):
    """Records each output that was shown."""

    def __init__(self) -> None:
        self.all: list[str] = []

    def show(self, messages: Sequence[Message]) -> None:
        self.all.append("\n".join(message.data for message in messages))

    def append(self, text: str, kind: Kind = Kind.TEXT) -> None:
        raise AssertionError("the output must be shown as a whole")

    def link(self, label: str, url: str, tooltip: str = "") -> None:
        raise AssertionError("there is no job, so no link")


def make_buffer() -> OutputBuffer:
    return OutputBuffer(RecordedOutput(), LIMIT, interval=0)


@pytest.mark.slow
def test_a_log_shows_its_last_lines_and_the_number_of_omitted_ones() -> None:
    buffer = make_buffer()
    for start in range(0, 5000, 100):
        lines = [f"line {number} <b>\n" for number in range(start, start + 100)]
        buffer.write("".join(lines), log=True)
    (message,) = buffer.messages()
    assert message.kind is Kind.HTML
    assert len(message.data) <= LIMIT
    text = re.search(r"<pre [^>]*>(.*)</pre>", message.data, re.DOTALL)
    assert text is not None
    first, *rest = text[1].split("\n")
    count = int(first.removeprefix("... ").removesuffix(" lines before these").replace(",", ""))
    assert rest[0] == f"line {count} &lt;b&gt;"
    assert rest[-1] == "line 4999 &lt;b&gt;"


def test_text_is_cut_at_lines_and_long_lines_within() -> None:
    buffer = make_buffer()
    for start in range(0, 2000, 10):
        buffer.write("".join(f"row {number}\n" for number in range(start, start + 10)))
    (message,) = buffer.messages()
    first, second, *_ = message.data.split("\n")
    count = int(first.removeprefix("... ").removesuffix(" lines before these").replace(",", ""))
    assert second == f"row {count}"
    coloured = make_buffer()
    coloured.write("".join(f"\x1b[3{number % 8}mx" for number in range(4000)), log=True)
    (message,) = coloured.messages()
    assert "xxxx" in message.data
    assert len(message.data) <= LIMIT


def test_a_display_is_replaced_and_removed() -> None:
    shown = RecordedOutput()
    buffer = OutputBuffer(shown, LIMIT, interval=0)
    buffer.write("first\n")
    buffer.add(Kind.TEXT, "Submitting <b> ...\n", "line")
    buffer.update("line", Kind.TEXT, "Packing: 50 %\n")
    buffer.write("second\n")
    buffer.remove("line")
    assert shown.all == [
        "first\n",
        "first\n\nSubmitting <b> ...\n",
        "first\n\nPacking: 50 %\n",
        "first\n\nPacking: 50 %\n\nsecond\n",
        "first\n\nsecond\n",
    ]
    # Text is not HTML.
    assert {message.kind for message in buffer.messages()} == {Kind.TEXT}


def test_html_that_is_too_long_is_shown_as_text() -> None:
    buffer = make_buffer()
    buffer.write("before\n")
    buffer.add(Kind.HTML, "<p>short</p>", plain="short")
    buffer.add(Kind.HTML, "<p>" + "x" * LIMIT + "</p>", plain="the <b> text")
    assert [(one.kind, one.data) for one in buffer.messages()][1:] == [
        (Kind.HTML, "<p>short</p>"),
        (Kind.TEXT, "the <b> text\n"),
    ]


def test_an_output_with_an_empty_log_is_empty() -> None:
    buffer = make_buffer()
    buffer.write("", log=True)
    assert buffer.empty
    buffer.write("something")
    assert not buffer.empty
