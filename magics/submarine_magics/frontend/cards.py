"""Job cards in the outputs of cells, updated while the job runs.

In a kernel each card has a display id, and its updates belong to the cell that shows the card. In a
terminal a card is text that is printed once. ``submarine_jobs.display`` renders the content. A live
card costs a connection to the job's agent and a share of the server's output rate, so the number of
live cards is bounded. The connection is not open while a page with the front-end extension shows
the job (``submarine_jobs.tracking.page_views``).
"""

from __future__ import annotations

import contextlib
import threading
import uuid
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import IPython.display

from submarine_jobs import display
from submarine_jobs.errors import SubmarineError
from submarine_jobs.model import JobView
from submarine_jobs.outputs import format_results, has_result
from submarine_magics.execution import defer_interrupts
from submarine_runtime.protocol import State

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from submarine_jobs.client import Job

#: Live cards of a kernel. At three updates a second of about 12 kB each they stay below 1 MB/s, the
#: default output limit of Jupyter servers.
MAX_LIVE = 24
#: Cards of a kernel that may still change: live, paused or ended.
MAX_KEPT = 500
#: Jobs that are remembered as shown.
_MAX_SHOWN = 2000


class JobCard:
    """The card of one job in one output.

    Parameters
    ----------
    send
        Sends a MIME bundle as an update of this card; called from any thread.
    """

    def __init__(self, job: Job, send: Callable[[dict[str, Any]], None]) -> None:
        self.job = job
        self._send = send
        self._lock = threading.Lock()
        self.final = False
        self.unsubscribe: Callable[[], None] = lambda: None

    def update(self, view: JobView) -> None:
        """Show a new view, unless the card is final; called by the watcher's thread."""
        ended = view.record.state.ended
        with self._lock:
            if self.final:
                return
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
        if result := format_results(self.job, view.record):
            with self._lock:
                self._send(display.mimebundle(view, result=result))


class LiveCards:
    """Cards of one kernel that may still change, thread-safe. The ``MAX_LIVE`` newest are live.

    Older cards are paused, and continue when a live one ends.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._cards: list[JobCard] = []
        self._live: list[JobCard] = []

    def add(self, card: JobCard) -> None:
        """Make ``card`` live, and pause the oldest live card if there are too many."""
        with self._lock:
            self._cards.append(card)
            while len(self._live) >= MAX_LIVE:
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

        card.unsubscribe = card.job.session.watcher.subscribe(card.job, update, display=True)

    def _on_final(self, card: JobCard) -> None:
        with self._lock:
            if card in self._live:
                self._live.remove(card)
            self._fill()

    def _fill(self) -> None:
        for card in self._cards:
            if len(self._live) >= MAX_LIVE:
                return
            if not card.final and card not in self._live:
                self._start(card)


class JobDisplays:
    """Displays of one kernel: job cards, progress lines and workflow graphs."""

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell = shell
        self._live = LiveCards()
        self._shown: tuple[str, int] | None = None
        self._ever_shown: dict[str, None] = {}
        #: Display id of the progress line of a submission in the current cell.
        self.place: str | None = None

    @property
    def rich(self) -> bool:
        """Whether outputs may contain HTML: in a kernel."""
        return getattr(self._shell, "kernel", None) is not None

    def shown_in_cell(self, job: Job) -> bool:
        """Whether the current cell shows the job."""
        return self._shown == (job.id, self._shell.execution_count)

    def shown(self, job: Job) -> bool:
        """Whether any output shows the job."""
        return job.id in self._ever_shown

    def mark_shown(self, job: Job) -> None:
        """Record that the current cell shows the job."""
        self._shown = (job.id, self._shell.execution_count)
        self._ever_shown[job.id] = None
        while len(self._ever_shown) > _MAX_SHOWN:
            del self._ever_shown[next(iter(self._ever_shown))]

    def display_job(self, job: Job) -> None:
        """Display a ``Job`` that is the value of a cell, at most once in that cell."""
        if not self.shown_in_cell(job):
            self.show(job)

    def show(self, job: Job) -> JobView:
        """Show the job's card in the current output, and update it until the job ends."""
        self.mark_shown(job)
        view = job.view()
        result = format_results(job, view.record) if has_result(view.record) else {}
        if not self.rich:
            print(display.text(view, command="%submarine", result=result))
            return view
        replaced, self.place = self.place, None
        display_id = replaced or uuid.uuid4().hex
        bundle = display.mimebundle(view, result=result)
        with defer_interrupts():  # An interrupt in between would leave a card without updates.
            show(bundle, display_id, update=replaced is not None)
            if not view.record.state.ended:
                self._live.add(JobCard(job, self._sender(display_id)))
        if view.record.state.ended:
            self.finish(job)
        return view

    def line(self, text: str, display_id: str | None) -> str:
        """Show a line of text, or update the one with that display id; return its display id."""
        update = display_id is not None
        display_id = display_id or uuid.uuid4().hex
        show({"text/plain": text}, display_id, update=update)
        return display_id

    def add_output(self, bundle: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], None]:
        """Show a MIME bundle; return a function that replaces it, for any thread."""
        display_id = uuid.uuid4().hex
        show(dict(bundle), display_id)
        send = self._sender(display_id)
        return lambda newer: send(dict(newer))

    def finish(self, job: Job) -> None:
        """Update all cards of a job to its present state, from the current cell, and end them.

        A headless executor ignores updates that belong to an earlier cell.
        """
        cards = self._live.of_job(job.id)
        if not cards:
            return
        view = job.view()
        result = format_results(job, view.record) if has_result(view.record) else {}
        for card in cards:
            card.finish(view, result)
            self._live.remove(card)

    def finish_all(self) -> None:
        """Finish all cards, those of running jobs included."""
        for job in self._live.jobs():
            # A card that cannot be updated stays as it is.
            with contextlib.suppress(SubmarineError, OSError, ValueError):
                self.finish(job)

    def _sender(self, display_id: str) -> Callable[[dict[str, Any]], None]:
        """Return a function that sends updates with the current cell as their parent."""
        publisher: Any = self._shell.display_pub
        home = publisher.parent_header
        main = threading.get_ident()

        def send(bundle: dict[str, Any]) -> None:
            # In the kernel's main thread the parent is the running cell: see `finish`.
            parent = publisher.parent_header if threading.get_ident() == main else home
            content = {"data": bundle, "metadata": {}, "transient": {"display_id": display_id}}
            with contextlib.suppress(OSError):
                publisher.session.send(
                    publisher.pub_socket,
                    "update_display_data",
                    content,
                    parent=parent,
                    ident=publisher.topic,
                )

        return send


def show(bundle: dict[str, Any], display_id: str | None = None, *, update: bool = False) -> None:
    """Display a MIME bundle in the current cell, or update an existing display."""
    put: Any = IPython.display.display
    put(bundle, raw=True, display_id=display_id, update=update)
