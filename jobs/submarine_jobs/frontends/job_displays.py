"""Job cards in the outputs of cells and paragraphs, updated while the job runs.

A card is a MIME bundle with a display id. A ``Publisher`` shows and updates bundles: as display
data of a kernel or as the output of a Zeppelin paragraph. In a terminal a card is text that is
printed once. ``submarine_jobs.display`` renders the content. A live card costs a connection to the
job's agent and a share of the server's output rate, so the number of live cards is bounded. The
connection is not open while a page with the front-end extension shows the job
(``submarine_jobs.tracking.page_views``).
"""

from __future__ import annotations

import contextlib
import threading
import uuid
import weakref
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from submarine_jobs import display
from submarine_jobs.errors import SubmarineError
from submarine_jobs.model import JobView
from submarine_jobs.outputs import format_results, has_result
from submarine_runtime.protocol import JobRecord, State

if TYPE_CHECKING:
    from submarine_jobs.client import Job

#: A MIME bundle: MIME type -> data.
MimeBundle = Mapping[str, Any]
#: Live cards of a kernel. At three updates a second of about 12 kB each they stay below 1 MB/s, the
#: default output limit of Jupyter servers.
MAX_LIVE = 24
#: Cards of a kernel that may still change: live, paused or ended.
MAX_KEPT = 500
#: Jobs that are remembered as shown.
_MAX_SHOWN = 2000


class Publisher:
    """The output of the running cell or paragraph, and updates of what it shows.

    The methods may be called from any thread. The base class shows nothing.

    Attributes
    ----------
    rich
        Whether outputs may contain HTML and be updated.
    reads_results
        Whether this process may load the values that a job has returned.
    """

    rich = True
    reads_results = True

    @property
    def place(self) -> object:
        """Key of the current output; equal keys mean the same output."""
        return None

    def write(self, text: str) -> None:
        """Write text to the output."""

    def track(self, job: Job) -> None:
        """Prepare the display of a job, whose bundles follow."""

    def show(self, bundle: MimeBundle, display_id: str, *, update: bool = False) -> None:
        """Show a MIME bundle in the current output, or update the display with this id."""

    def sender(self, display_id: str) -> Callable[[MimeBundle], None]:
        """Return a function that updates a display, also after the end of the command."""
        return lambda bundle: self.show(bundle, display_id, update=True)

    def remove(self, display_id: str) -> None:
        """Remove a display, if the output supports it."""

    def uninterrupted(self) -> contextlib.AbstractContextManager[None]:
        """Return a context in which the command is not interrupted."""
        return contextlib.nullcontext()


class JobCard:
    """The card of one job in one output.

    Parameters
    ----------
    send
        Sends a MIME bundle as an update of this card; called from any thread.
    read_result
        Returns the returned values of an ended job as short texts.
    """

    def __init__(
        self,
        job: Job,
        send: Callable[[MimeBundle], None],
        read_result: Callable[[Job, JobRecord], dict[str, str]] = format_results,
    ) -> None:
        self.job = job
        self._send = send
        self._read_result = read_result
        self._log = ("", "")
        self._lock = threading.Lock()
        self.final = False
        self.unsubscribe: Callable[[], None] = lambda: None

    def update(self, view: JobView) -> None:
        """Show a new view, unless the card is final; called by the watcher's thread."""
        ended = view.record.state.ended
        with self._lock:
            if self.final:
                return
            if view.tail:
                self._log = (view.tail, view.task)
            else:  # a new subscriber gets a view without log lines
                view = replace(view, tail=self._log[0], task=self._log[1] or view.task)
            # The state LOST may be revised.
            self.final = ended and view.record.state is not State.LOST
            self._send(display.mimebundle(view))
        if ended and has_result(view.record):
            threading.Thread(
                target=self._show_result, args=(view,), daemon=True, name="submarine-result"
            ).start()

    def finish(self, view: JobView, result: dict[str, str]) -> None:
        """Show the final view and stop updates."""
        with self._lock:
            self.final = True
            self._send(display.mimebundle(view, result=result))
        self.unsubscribe()

    def _show_result(self, view: JobView) -> None:
        if result := self._read_result(self.job, view.record):
            with self._lock:
                self._send(display.mimebundle(view, result=result))


class LiveCards:
    """Cards of one process that may still change, thread-safe. The newest are live.

    Older cards are paused, and continue when a live one ends.

    Parameters
    ----------
    max_live
        Maximum number of live cards.
    in_page
        Whether a page of the Jupyter server may show these cards: while one shows a job, its cards
        get the view of that page, without the end of the log.
    """

    def __init__(self, max_live: int = MAX_LIVE, *, in_page: bool = True) -> None:
        self._max_live = max_live
        self._in_page = in_page
        self._lock = threading.RLock()
        self._cards: list[JobCard] = []
        self._live: list[JobCard] = []

    def add(self, card: JobCard) -> None:
        """Make ``card`` live, and pause the oldest live card if there are too many."""
        with self._lock:
            self._cards.append(card)
            while len(self._live) >= self._max_live:
                self._live.pop(0).unsubscribe()
            self._start(card)
            while len(self._cards) > MAX_KEPT:
                self._remove(next((old for old in self._cards if old.final), self._cards[0]))

    def of_job(self, job_id: str) -> list[JobCard]:
        """Return the cards of a job, final ones included."""
        with self._lock:
            return [card for card in self._cards if card.job.id == job_id]

    def jobs(self) -> list[Job]:
        """Return the jobs of the cards, each once."""
        with self._lock:
            return list({card.job.id: card.job for card in self._cards}.values())

    def remove(self, card: JobCard) -> None:
        """Remove a card, and continue a paused one."""
        with self._lock:
            if card in self._cards:
                self._remove(card)
                self._fill()

    def _remove(self, card: JobCard) -> None:
        self._cards.remove(card)
        if card in self._live:
            self._live.remove(card)
        card.unsubscribe()

    def _start(self, card: JobCard) -> None:
        self._live.append(card)

        def update(view: JobView) -> None:
            card.update(view)
            if card.final:
                self._on_final(card)

        watcher = card.job.session.watcher
        card.unsubscribe = watcher.subscribe(card.job, update, display=self._in_page)

    def _on_final(self, card: JobCard) -> None:
        with self._lock:
            if card in self._live:
                self._live.remove(card)
            self._fill()

    def _fill(self) -> None:
        for card in self._cards:
            if len(self._live) >= self._max_live:
                return
            if not card.final and card not in self._live:
                self._start(card)


class JobDisplays:
    """Displays of one kernel or paragraph: job cards, progress lines and workflow graphs.

    Parameters
    ----------
    live
        Cards of the process; other displays may share them.
    """

    def __init__(self, publisher: Publisher, live: LiveCards | None = None) -> None:
        self.publisher = publisher
        self._live = live if live is not None else LiveCards()
        self._own: weakref.WeakSet[JobCard] = weakref.WeakSet()
        #: Job id -> output that showed the job last.
        self._shown: dict[str, object] = {}
        #: Display id of the progress line of a submission in the current cell.
        self.place: str | None = None

    @property
    def rich(self) -> bool:
        """Whether outputs may contain HTML."""
        return self.publisher.rich

    def shown_in_cell(self, job: Job) -> bool:
        """Whether the current cell shows the job."""
        return self.shown(job) and self._shown[job.id] == self.publisher.place

    def shown(self, job: Job) -> bool:
        """Whether any output shows the job."""
        return job.id in self._shown

    def mark_shown(self, job: Job) -> None:
        """Record that the current cell shows the job."""
        self._shown.pop(job.id, None)
        self._shown[job.id] = self.publisher.place
        while len(self._shown) > _MAX_SHOWN:
            del self._shown[next(iter(self._shown))]

    def display_job(self, job: Job) -> None:
        """Display a ``Job`` that is the value of a cell, at most once in that cell."""
        if not self.shown_in_cell(job):
            self.show(job)

    def show(self, job: Job) -> JobView:
        """Show the job's card in the current output, and update it until the job ends."""
        self.publisher.track(job)
        view = job.view()
        self.mark_shown(job)
        result = self._result(job, view.record)
        if not self.rich:
            self.publisher.write(display.text(view, command="%submarine", result=result) + "\n")
            return view
        replaced, self.place = self.place, None
        display_id = replaced or uuid.uuid4().hex
        bundle = display.mimebundle(view, result=result)
        # An interrupt in between would leave a card without updates.
        with self.publisher.uninterrupted():
            self.publisher.show(bundle, display_id, update=replaced is not None)
            if not view.record.state.ended:
                card = JobCard(job, self.publisher.sender(display_id), self._result)
                self._own.add(card)
                self._live.add(card)
        if view.record.state.ended:
            self.finish(job)
        return view

    def line(self, text: str, display_id: str | None) -> str:
        """Show a line of text, or update the one with that display id; return its display id."""
        update = display_id is not None
        display_id = display_id or uuid.uuid4().hex
        self.publisher.show({"text/plain": text}, display_id, update=update)
        return display_id

    def add_output(self, bundle: MimeBundle) -> Callable[[MimeBundle], None]:
        """Show a MIME bundle; return a function that replaces it, for any thread."""
        display_id = uuid.uuid4().hex
        self.publisher.show(bundle, display_id)
        return self.publisher.sender(display_id)

    def finish(self, job: Job) -> None:
        """Update all cards of a job to its present state, from the current cell, and end them.

        A headless executor ignores updates that belong to an earlier cell.
        """
        cards = self._live.of_job(job.id)
        if not cards:
            return
        view = job.view()
        result = self._result(job, view.record)
        for card in cards:
            card.finish(view, result)
            self._live.remove(card)

    def finish_all(self) -> None:
        """Finish all cards, those of running jobs included."""
        for job in self._live.jobs():
            # A card that cannot be updated stays as it is.
            with contextlib.suppress(SubmarineError, OSError, ValueError):
                self.finish(job)

    def close(self) -> None:
        """Stop the updates of the cards of these displays. They stay as they are."""
        for card in list(self._own):
            self._live.remove(card)

    def _result(self, job: Job, record: JobRecord) -> dict[str, str]:
        readable = self.publisher.reads_results and has_result(record)
        return format_results(job, record) if readable else {}
