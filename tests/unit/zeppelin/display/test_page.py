"""What a `%submarine` paragraph shows: logs with their lines, the step under way, its bounds."""

from __future__ import annotations

import re
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from submarine_zeppelin.display import Card, Page
from submarine_zeppelin.interface import Context, Kind, Message, NoteParagraph, Output, Server
from submarine_zeppelin.submarine import interpreter as submarine
from submarine_zeppelin.submarine.interpreter import SubmarineInterpreter
from submarine_zeppelin.submarine.interruption import Stop

LIMIT = 10_000


class Shown(Output):
    """Keeps each output that was shown."""

    def __init__(self) -> None:
        self.all: list[str] = []

    def show(self, messages: Sequence[Message]) -> None:
        self.all.append("\n".join(message.data for message in messages))

    def append(self, text: str, kind: Kind = Kind.TEXT) -> None:
        raise AssertionError("a page is shown as a whole")

    def link(self, label: str, url: str, tooltip: str = "") -> None:
        raise AssertionError("no job, no link")


def test_a_log_keeps_its_lines_and_says_how_many_went_before() -> None:
    page = Page(Shown(), LIMIT)
    for number in range(5000):
        page.write(f"line {number} <b>\n")
    (message,) = page.messages()
    assert message.kind is Kind.HTML
    assert len(message.data) <= LIMIT
    text = re.search(r"<pre [^>]*>(.*)</pre>", message.data, re.DOTALL)
    assert text is not None
    first, *rest = text[1].split("\n")
    count = int(first.removeprefix("... ").removesuffix(" lines before these").replace(",", ""))
    assert rest[0] == f"line {count} &lt;b&gt;"
    assert rest[-1] == "line 4999 &lt;b&gt;"


def test_sentences_are_cut_at_lines_and_a_single_long_line_within() -> None:
    page = Page(Shown(), LIMIT)
    for number in range(2000):
        page.say(f"row {number}")
    (message,) = page.messages()
    first, second, *_ = message.data.split("\n")
    count = int(first.removeprefix("... ").removesuffix(" lines before these").replace(",", ""))
    assert second == f"row {count}"
    coloured = Page(Shown(), LIMIT)
    coloured.write("".join(f"\x1b[3{number % 8}mx" for number in range(4000)))
    (message,) = coloured.messages()
    assert "xxxx" in message.data
    assert len(message.data) <= LIMIT


def test_a_step_is_there_until_the_next_thing() -> None:
    shown = Shown()
    page = Page(shown, LIMIT)
    page.say("first")
    page.step("Submitting <b> ...")
    page.show()
    page.step("Packing: 50 %")
    page.show()
    page.step("")
    page.show()
    assert [text.split("\n") for text in shown.all] == [
        ["first", "", "Submitting <b> ...", ""],
        ["first", "", "Packing: 50 %", ""],
        ["first", ""],
    ]
    # Words of a step are text, never a page.
    assert {message.kind for message in page.messages()} == {Kind.TEXT}


def test_a_log_with_nothing_in_it_is_empty() -> None:
    page = Page(Shown(), LIMIT)
    page.write("")
    assert page.empty
    page.say("something")
    assert not page.empty


class NoServer(Server):
    """A server that is not called."""

    def paragraphs(self, note_id: str, user: str) -> list[NoteParagraph]:
        raise AssertionError("no paragraph is read")

    def output(self, context: Context) -> Output:
        raise AssertionError("no output is asked for")


def test_pages_whose_jobs_have_ended_are_kept_in_small_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(submarine, "_MAX_ENDED", 10)
    monkeypatch.setattr(submarine, "_MAX_PAGES", 20)
    interpreter = SubmarineInterpreter({}, NoServer(), "session")

    def begin(name: str, *cards: Card) -> None:
        page = Page(Shown(), LIMIT)
        page._items.extend(cards)
        interpreter._begin(Context("2N", name), page, Stop())

    job: Any = SimpleNamespace(id="digits-20261120-7f3a")
    going_on = [Card(job) for _ in range(8)]
    for number, card in enumerate(going_on):
        begin(f"on-{number}", card)
    for number in range(40):
        begin(f"ended-{number}")
    kept = [place[1] for place in interpreter._pages]
    assert kept[:8] == [f"on-{number}" for number in range(8)]
    assert kept[8:] == [f"ended-{number}" for number in range(30, 40)]
    interpreter.close()
