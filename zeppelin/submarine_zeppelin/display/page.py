"""What one run of a ``%submarine`` paragraph shows: lines, tables of verbs, cards of jobs.

Holds it and turns it into a paragraph's output, within Zeppelin's limit; text of a job, of a
cluster or of an error is never HTML. Says nothing by itself and keeps nothing up to date
(``refresher``).
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass, field, replace

from submarine_jobs import display
from submarine_jobs.client import Job
from submarine_jobs.display import ansi, summary
from submarine_jobs.errors import SubmarineError
from submarine_jobs.model import JobView
from submarine_jobs.outputs import MetricsReader
from submarine_jobs.text import escaped, printable, web_link
from submarine_runtime.protocol.states import State
from submarine_zeppelin.display.chart import Curves, svg
from submarine_zeppelin.display.screen import lines_before, terminal_html
from submarine_zeppelin.interface import Kind, Message, Output, ParagraphGoneError, tail_of_lines
from submarine_zeppelin.notes import STANDS_STILL, in_note

log = logging.getLogger(__name__)
#: What a card is counted for: its record and the end of its log, in characters.
_CARD = 16_000
#: Links of a record that are the cluster's own page of the job, the best first.
_YARN = ("YARN log", "YARN application", "Job page")
#: A long log scrolls in its place as Zeppelin's own text does, its end in sight.
_SCROLLED = (
    '<div style="max-height:480px;overflow:auto;display:flex;flex-direction:column-reverse">'
    '<div style="flex:none">{}</div></div>'
)


@dataclass
class Card:
    """One job in a paragraph."""

    job: Job
    view: JobView | None = None
    curves: Curves = field(default_factory=Curves)
    #: Its last word is known, and then, that it is shown.
    final: bool = False
    ended: threading.Event = field(default_factory=threading.Event)
    #: The interpreter ends: nothing moves the card until the next one has been started.
    paused: bool = False
    _reader: MetricsReader | None = None
    _measuring: threading.Lock = field(default_factory=threading.Lock)

    def hear(self, view: JobView) -> None:
        """A newer view of the job; nothing follows the last word."""
        if self.final:
            return
        if not view.tail and self.view is not None:
            # One that begins to listen has not read the log yet.
            view = replace(view, tail=self.view.tail, task=self.view.task)
        self.view = view
        self.final = view.record.state.ended and view.record.state is not State.LOST
        if view.record.state.ended:
            self.ended.set()

    def measure(self) -> bool:
        """Read what was measured since, and say whether there was anything; blocks."""
        view = self.view
        if view is None or not any(task.started for task in view.record.tasks):
            return False
        with self._measuring:
            if self._reader is None:
                self._reader = MetricsReader(self.job.directory)
            try:
                rows = list(self._reader.fresh())
            except (SubmarineError, OSError, ValueError) as error:
                log.info("no metrics of %s: %s", self.job.id, error)
                return False
            return self.curves.add(rows)

    @property
    def progress(self) -> int:
        """Percent, as far as the program tells."""
        done = summary.progress(self.view.record) if self.view is not None else None
        return int(done * 100) if done is not None else 0

    def html(self, limit: int) -> str:
        """The card; one with a log in too many colours is shown without them."""
        view = self.view
        if view is None:
            return f"<p>{escaped(self.job.id)}</p>"
        found = self._html(view)
        for tail in (ansi.to_text(view.tail, lines=12, width=400), ""):
            if len(found) <= limit:
                break
            found = self._html(replace(view, tail=tail))
        return found

    def _html(self, view: JobView) -> str:
        job_id = escaped(self.job.id)
        words = f"%submarine logs {job_id}</code> shows its whole log"
        if not view.record.state.ended:
            words += f", <code>%submarine cancel {job_id}</code> ends it"
        pause = STANDS_STILL if self.paused and not self.final else ""
        return (
            f"{in_note(display.html(view))}\n{svg(self.curves.series)}"
            f'<div style="font-size:12px;opacity:.72"><code>{words}.{pause}</div>'
        )


@dataclass
class _Lines:
    text: str = ""
    terminal: bool = False
    #: Lines before these that are kept no more.
    cut: int = 0


@dataclass
class Picture:
    """HTML that is renewed."""

    page: str


class Page:
    """The output of one run; safe from any thread."""

    def __init__(self, output: Output, limit: int) -> None:
        self.output = output
        self._limit = limit
        self._lock = threading.RLock()
        self._items: list[Card | Picture | _Lines | str] = []
        self._linked = self._step = ""
        #: Whether a job was submitted by this run, and whether the run was one of the form.
        self.started = self.form = False
        #: Whether another run of this process has the paragraph now.
        self.left = False

    @property
    def empty(self) -> bool:
        """Whether there is nothing to see."""
        with self._lock:
            return not any(not isinstance(item, _Lines) or item.text for item in self._items)

    @property
    def size(self) -> int:
        """Characters that it holds."""
        with self._lock:
            return sum(
                len(item.text)
                if isinstance(item, _Lines)
                else len(item.page)
                if isinstance(item, Picture)
                else len(item)
                if isinstance(item, str)
                else _CARD
                for item in self._items
            )

    @property
    def cards(self) -> list[Card]:
        """The jobs that it shows."""
        with self._lock:
            return [item for item in self._items if isinstance(item, Card)]

    def say(self, text: str) -> None:
        """A sentence or several; never HTML."""
        self._lines(in_note(printable(text, self._limit // 2)) + "\n", terminal=False)

    def write(self, text: str) -> None:
        """A piece of a log, in its colours."""
        self._lines(text, terminal=True)

    def html(self, page: str) -> None:
        """HTML that the core made, everything in it escaped."""
        with self._lock:
            self._items.append(in_note(page))

    def picture(self, page: str) -> Picture:
        """HTML that may be replaced later."""
        picture = Picture(page)
        with self._lock:
            self._items.append(picture)
        return picture

    def card(self, job: Job) -> Card:
        """Show a job, below what is there; the same one only once."""
        with self._lock:
            for card in self.cards:
                if card.job.id == job.id:
                    return card
            card = Card(job)
            self._items.append(card)
            self._step = ""
            return card

    def step(self, text: str) -> None:
        """What goes on now, as the last line; the next one and a card take its place."""
        with self._lock:
            self._step = in_note(printable(text, 200))

    def messages(self) -> tuple[Message, ...]:
        """It as a paragraph's output."""
        with self._lock:
            items = list(self._items)
            if self._step:
                items.append(_Lines(self._step + "\n"))
        room = self._limit * 9 // 10
        share = room // max(1, len(items))
        return tuple(self._message(item, max(share, room // 4)) for item in items)

    def leave(self) -> None:
        """Write nothing any more: another run has the paragraph, and maybe this very output."""
        with self._lock:
            self.left = True

    def show(self) -> None:
        """Bring the paragraph to what it is to show now, with its link to the cluster.

        Raises
        ------
        ParagraphGoneError
            If the paragraph is another run's now.
        """
        with self._lock:
            if self.left:
                raise ParagraphGoneError("another run of this process has the paragraph")
            self.output.show(self.messages())
        for card in self.cards:
            links = card.view.record.links if card.view is not None else {}
            url = next((web_link(links[name]) for name in _YARN if name in links), None)
            url = url or next(filter(None, map(web_link, links.values())), None)
            if url and url != self._linked:
                self._linked = url
                self.output.link("YARN LOG", url, f"{card.job.id} on the cluster")

    def _lines(self, text: str, *, terminal: bool) -> None:
        with self._lock:
            last = self._items[-1] if self._items else None
            if not isinstance(last, _Lines) or last.terminal is not terminal:
                last = _Lines(terminal=terminal)
                self._items.append(last)
            last.text += text
            if len(last.text) > 2 * self._limit:
                kept = tail_of_lines(last.text, self._limit)
                last.cut += last.text.count("\n", 0, len(last.text) - len(kept))
                last.text = kept

    def _message(self, item: Card | Picture | _Lines | str, room: int) -> Message:
        if isinstance(item, Card):
            return Message(Kind.HTML, item.html(room))
        if isinstance(item, Picture):
            item = in_note(item.page)
        if isinstance(item, str):
            if len(item) <= room:
                return Message(Kind.HTML, item)
            return Message(Kind.TEXT, f"An output of {len(item):,} characters is too long here.\n")
        if item.terminal:
            found = terminal_html(item.text, room - len(_SCROLLED), before=item.cut)
            return Message(Kind.HTML, _SCROLLED.format(found))
        text = tail_of_lines(item.text, room)
        cut = item.cut + item.text.count("\n", 0, len(item.text) - len(text))
        return Message(Kind.TEXT, lines_before(cut) + text)
