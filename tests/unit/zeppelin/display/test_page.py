"""Pages of `%submarine` paragraphs: logs, text, current step, limits."""

from __future__ import annotations

import re
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from submarine_zeppelin.display import JobCard, Page
from submarine_zeppelin.interface import Context, Kind, Message, NoteParagraph, Output, Server
from submarine_zeppelin.submarine import interpreter as submarine
from submarine_zeppelin.submarine.interpreter import SubmarineInterpreter
from submarine_zeppelin.submarine.interruption import Interruption

LIMIT = 10_000


class RecordedOutput(Output):
    """Records each output that was shown."""

    def __init__(self) -> None:
        self.all: list[str] = []

    def show(self, messages: Sequence[Message]) -> None:
        self.all.append("\n".join(message.data for message in messages))

    def append(self, text: str, kind: Kind = Kind.TEXT) -> None:
        raise AssertionError("a page must be shown as a whole")

    def link(self, label: str, url: str, tooltip: str = "") -> None:
        raise AssertionError("there is no job, so no link")


def test_a_log_shows_its_last_lines_and_the_number_of_omitted_ones() -> None:
    page = Page(RecordedOutput(), LIMIT)
    for number in range(5000):
        page.add_log(f"line {number} <b>\n")
    (message,) = page.messages()
    assert message.kind is Kind.HTML
    assert len(message.data) <= LIMIT
    text = re.search(r"<pre [^>]*>(.*)</pre>", message.data, re.DOTALL)
    assert text is not None
    first, *rest = text[1].split("\n")
    count = int(first.removeprefix("... ").removesuffix(" lines before these").replace(",", ""))
    assert rest[0] == f"line {count} &lt;b&gt;"
    assert rest[-1] == "line 4999 &lt;b&gt;"


def test_text_is_cut_at_lines_and_long_lines_within() -> None:
    page = Page(RecordedOutput(), LIMIT)
    for number in range(2000):
        page.add_text(f"row {number}")
    (message,) = page.messages()
    first, second, *_ = message.data.split("\n")
    count = int(first.removeprefix("... ").removesuffix(" lines before these").replace(",", ""))
    assert second == f"row {count}"
    coloured = Page(RecordedOutput(), LIMIT)
    coloured.add_log("".join(f"\x1b[3{number % 8}mx" for number in range(4000)))
    (message,) = coloured.messages()
    assert "xxxx" in message.data
    assert len(message.data) <= LIMIT


def test_a_step_is_replaced() -> None:
    shown = RecordedOutput()
    page = Page(shown, LIMIT)
    page.add_text("first")
    page.set_step("Submitting <b> ...")
    page.show()
    page.set_step("Packing: 50 %")
    page.show()
    page.set_step("")
    page.show()
    assert [text.split("\n") for text in shown.all] == [
        ["first", "", "Submitting <b> ...", ""],
        ["first", "", "Packing: 50 %", ""],
        ["first", ""],
    ]
    # Steps are text and not HTML.
    assert {message.kind for message in page.messages()} == {Kind.TEXT}


def test_a_page_with_an_empty_log_is_empty() -> None:
    page = Page(RecordedOutput(), LIMIT)
    page.add_log("")
    assert page.empty
    page.add_text("something")
    assert not page.empty


class NoServer(Server):
    """Server that must not be called."""

    def paragraphs(self, note_id: str, user: str) -> list[NoteParagraph]:
        raise AssertionError("no paragraph may be read")

    def output(self, context: Context) -> Output:
        raise AssertionError("no output may be requested")


def test_the_number_of_pages_in_memory_is_limited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(submarine, "_MAX_ENDED", 10)
    monkeypatch.setattr(submarine, "_MAX_PAGES", 20)
    interpreter = SubmarineInterpreter({}, NoServer(), "session")

    def begin(name: str, *cards: JobCard) -> None:
        page = Page(RecordedOutput(), LIMIT)
        page._items.extend(cards)
        interpreter._begin(Context("2N", name), page, Interruption())

    job: Any = SimpleNamespace(id="digits-20261120-7f3a")
    going_on = [JobCard(job) for _ in range(8)]
    for number, card in enumerate(going_on):
        begin(f"on-{number}", card)
    for number in range(40):
        begin(f"ended-{number}")
    kept = [place[1] for place in interpreter._pages]
    assert kept[:8] == [f"on-{number}" for number in range(8)]
    assert kept[8:] == [f"ended-{number}" for number in range(30, 40)]
    interpreter.close()
