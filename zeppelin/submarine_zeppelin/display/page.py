"""Contents of a ``%submarine`` paragraph: text, logs, HTML of commands, job cards.

Convert the contents to a paragraph's output within Zeppelin's limit. Text of jobs, clusters and
errors is escaped. ``card_updater`` updates the cards.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass, field, replace

from submarine_jobs import display
from submarine_jobs.client import Job
from submarine_jobs.display import summary
from submarine_jobs.errors import SubmarineError
from submarine_jobs.model import JobView
from submarine_jobs.outputs import MetricsReader
from submarine_jobs.text import ansi, escape_html, printable, web_link
from submarine_runtime.protocol import State
from submarine_runtime.translation import _
from submarine_zeppelin.display.chart import MetricHistory, render_svg
from submarine_zeppelin.display.output_buffer import omitted_notice, terminal_html
from submarine_zeppelin.interface import Kind, Message, Output, ParagraphGoneError, last_lines
from submarine_zeppelin.notes import PAUSED_NOTICE, reword

log = logging.getLogger(__name__)
#: Estimated size of a card in memory, in characters.
_CARD_SIZE = 16_000
#: Names of links to the cluster's page of a job, in order of preference.
_YARN_LINKS = (_("YARN log"), _("YARN application"), _("Job page"))
#: Container for a long log, scrolled to its end as Zeppelin's text output is.
_SCROLLED = (
    '<div style="max-height:480px;overflow:auto;display:flex;flex-direction:column-reverse">'
    '<div style="flex:none">{}</div></div>'
)


@dataclass
class JobCard:
    """A job in a paragraph."""

    job: Job
    view: JobView | None = None
    curves: MetricHistory = field(default_factory=MetricHistory)
    #: Whether the view is final, and whether the job has ended.
    final: bool = False
    ended: threading.Event = field(default_factory=threading.Event)
    #: Whether the interpreter has stopped, so that the card is not updated until its next start.
    paused: bool = False
    _reader: MetricsReader | None = None
    _metrics_lock: threading.Lock = field(default_factory=threading.Lock)

    def update(self, view: JobView) -> None:
        """Set a newer view of the job, unless the current view is final."""
        if self.final:
            return
        if not view.tail and self.view is not None:
            # A new subscriber gets a view without log lines.
            view = replace(view, tail=self.view.tail, task=self.view.task)
        self.view = view
        self.final = view.record.state.ended and view.record.state is not State.LOST
        if view.record.state.ended:
            self.ended.set()

    def read_metrics(self) -> bool:
        """Read new metrics and return whether there were any. Blocks."""
        view = self.view
        if view is None or not any(task.started for task in view.record.tasks):
            return False
        with self._metrics_lock:
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
        """Progress in percent, as reported by the program."""
        fraction = summary.progress(self.view.record) if self.view is not None else None
        return int(fraction * 100) if fraction is not None else 0

    def html(self, limit: int) -> str:
        """Return the card as HTML. If it is too long, omit the colors of the log, then the log."""
        view = self.view
        if view is None:
            return f"<p>{escape_html(self.job.id)}</p>"
        found = self._html(view)
        for tail in (ansi.to_text(view.tail, lines=12, width=400), ""):
            if len(found) <= limit:
                break
            found = self._html(replace(view, tail=tail))
        return found

    def _html(self, view: JobView) -> str:
        job_id = escape_html(self.job.id)
        hint = f"%submarine logs {job_id}</code> shows the complete log"
        if not view.record.state.ended:
            hint += f", <code>%submarine cancel {job_id}</code> cancels the job"
        notice = PAUSED_NOTICE if self.paused and not self.final else ""
        return (
            f"{reword(display.html(view))}\n{render_svg(self.curves.series)}"
            f'<div style="font-size:12px;opacity:.72"><code>{hint}.{notice}</div>'
        )


@dataclass
class _TextBlock:
    text: str = ""
    terminal: bool = False
    #: Number of earlier lines that were dropped.
    cut: int = 0


@dataclass
class UpdatableHtml:
    """HTML that may be replaced later."""

    page: str


class Page:
    """Contents of one run's output. Thread-safe."""

    def __init__(self, output: Output, limit: int) -> None:
        self.output = output
        self._limit = limit
        self._lock = threading.RLock()
        self._items: list[JobCard | UpdatableHtml | _TextBlock | str] = []
        self._linked = self._step = ""
        #: Whether this run submitted a job, and whether it was a run of the dashboard's form.
        self.started = self.form = False
        #: Whether a later run of this process uses the paragraph.
        self.superseded = False

    @property
    def empty(self) -> bool:
        """Whether the page has no contents."""
        with self._lock:
            return not any(not isinstance(item, _TextBlock) or item.text for item in self._items)

    @property
    def size(self) -> int:
        """Estimated size in characters."""
        with self._lock:
            return sum(
                len(item.text)
                if isinstance(item, _TextBlock)
                else len(item.page)
                if isinstance(item, UpdatableHtml)
                else len(item)
                if isinstance(item, str)
                else _CARD_SIZE
                for item in self._items
            )

    @property
    def cards(self) -> list[JobCard]:
        """Job cards on the page."""
        with self._lock:
            return [item for item in self._items if isinstance(item, JobCard)]

    def add_text(self, text: str) -> None:
        """Add lines of text, which are not interpreted as HTML."""
        self._add_lines(reword(printable(text, self._limit // 2)) + "\n", terminal=False)

    def add_log(self, text: str) -> None:
        """Add text of a log, with ANSI colors."""
        self._add_lines(text, terminal=True)

    def add_html(self, page: str) -> None:
        """Add HTML from ``submarine_jobs``, in which all text is escaped."""
        with self._lock:
            self._items.append(reword(page))

    def add_updatable_html(self, page: str) -> UpdatableHtml:
        """Add HTML that may be replaced later."""
        item = UpdatableHtml(page)
        with self._lock:
            self._items.append(item)
        return item

    def add_card(self, job: Job) -> JobCard:
        """Add a card for a job, or return the existing card."""
        with self._lock:
            for card in self.cards:
                if card.job.id == job.id:
                    return card
            card = JobCard(job)
            self._items.append(card)
            self._step = ""
            return card

    def set_step(self, text: str) -> None:
        """Set the current step, shown as the last line until the next step or card."""
        with self._lock:
            self._step = reword(printable(text, 200))

    def messages(self) -> tuple[Message, ...]:
        """Return the contents as a paragraph's output."""
        with self._lock:
            items = list(self._items)
            if self._step:
                items.append(_TextBlock(self._step + "\n"))
        total = self._limit * 9 // 10
        share = total // max(1, len(items))
        return tuple(self._message(item, max(share, total // 4)) for item in items)

    def supersede(self) -> None:
        """Stop writing, because a later run uses the paragraph and possibly the same output."""
        with self._lock:
            self.superseded = True

    def show(self) -> None:
        """Show the contents in the paragraph, with the link to the cluster.

        Raises
        ------
        ParagraphGoneError
            If another run uses the paragraph.
        """
        with self._lock:
            if self.superseded:
                raise ParagraphGoneError("another run of this process uses the paragraph")
            self.output.show(self.messages())
        for card in self.cards:
            links = card.view.record.links if card.view is not None else {}
            url = next((web_link(links[name]) for name in _YARN_LINKS if name in links), None)
            url = url or next(filter(None, map(web_link, links.values())), None)
            if url and url != self._linked:
                self._linked = url
                self.output.link(
                    _("YARN LOG"), url, _("{id} on the cluster").format(id=card.job.id)
                )

    def _add_lines(self, text: str, *, terminal: bool) -> None:
        with self._lock:
            last = self._items[-1] if self._items else None
            if not isinstance(last, _TextBlock) or last.terminal is not terminal:
                last = _TextBlock(terminal=terminal)
                self._items.append(last)
            last.text += text
            if len(last.text) > 2 * self._limit:
                tail = last_lines(last.text, self._limit)
                last.cut += last.text.count("\n", 0, len(last.text) - len(tail))
                last.text = tail

    def _message(self, item: JobCard | UpdatableHtml | _TextBlock | str, limit: int) -> Message:
        if isinstance(item, JobCard):
            return Message(Kind.HTML, item.html(limit))
        if isinstance(item, UpdatableHtml):
            item = reword(item.page)
        if isinstance(item, str):
            if len(item) <= limit:
                return Message(Kind.HTML, item)
            return Message(
                Kind.TEXT,
                _("An output of {count:,} characters is too long for this paragraph.\n").format(
                    count=len(item)
                ),
            )
        if item.terminal:
            found = terminal_html(item.text, limit - len(_SCROLLED), before=item.cut)
            return Message(Kind.HTML, _SCROLLED.format(found))
        text = last_lines(item.text, limit)
        cut = item.cut + item.text.count("\n", 0, len(item.text) - len(text))
        return Message(Kind.TEXT, omitted_notice(cut) + text)
