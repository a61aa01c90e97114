"""Show display data in the output of a paragraph, during its run and afterwards.

The front end sends display data as in a notebook; ``submarine_zeppelin.display`` converts it.
Metrics and links of a job are read in a thread for each job, because storage and server may not
respond.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from submarine_jobs.client import Job
from submarine_jobs.display import MIME_TYPE
from submarine_jobs.frontends import MimeBundle, Publisher
from submarine_runtime.protocol import State
from submarine_runtime.translation import _
from submarine_zeppelin.display import OutputBuffer, ShownJob, convert_mime_bundle
from submarine_zeppelin.interface import Context, Kind, Message, Output, ParagraphGoneError
from submarine_zeppelin.notes import reword
from submarine_zeppelin.submarine.interruption import Interruption
from submarine_zeppelin.submarine.job_index import ParagraphJob, ParagraphJobIndex

log = logging.getLogger(__name__)
#: Minimum seconds between two reads of a job's metrics, and between two checks whether another
#: process uses the paragraph.
METRICS_INTERVAL, CHECK_INTERVAL = 5.0, 1.0


@dataclass(eq=False)
class _Tracked:
    """A job of the paragraph, and its entry in the index."""

    shown: ShownJob
    index: ParagraphJobIndex
    row: ParagraphJob
    read_at: float = 0.0
    checked_at: float = 0.0
    reading: bool = False
    #: Set after the final state, metrics included, was shown.
    completed: threading.Event = field(default_factory=threading.Event)

    def check(self) -> None:
        """Raise ParagraphGoneError if another process uses the paragraph."""
        if self.index.is_superseded(self.row.job_id, (self.row.note, self.row.paragraph)):
            raise ParagraphGoneError("another process uses the paragraph")


class ParagraphPublisher(Publisher):
    """The output of one run of a paragraph.

    Parameters
    ----------
    limit
        Maximum number of characters of the output.
    stop
        The request to stop the run; None after the run.

    Attributes
    ----------
    started, form
        Whether the run has submitted a job, and whether it was a run of the dashboard's form.
    superseded
        Whether a later run of this process uses the paragraph.
    on_gone
        Called when the paragraph can no longer be shown, to stop the updates of its cards.
    """

    #: Arrays and tables would load NumPy and pandas into this process.
    reads_results = False

    def __init__(
        self, context: Context, output: Output, limit: int, stop: Interruption | None = None
    ) -> None:
        self._context = context
        self._output = output
        self._stop = stop
        self._buffer = OutputBuffer(output, limit, interval=0)
        self._lock = threading.RLock()
        self._jobs: dict[str, _Tracked] = {}
        self._linked: str | None = None
        self.started = self.form = self.superseded = False
        self.on_gone: Callable[[], None] = lambda: None

    @property
    def empty(self) -> bool:
        """Whether the output has no contents."""
        return self._buffer.empty

    @property
    def size(self) -> int:
        """Estimated size in characters."""
        return self._buffer.size + sum(job.size for job in self.jobs)

    @property
    def jobs(self) -> list[ShownJob]:
        """Jobs that the paragraph shows, in the order of their first display."""
        with self._lock:
            return [tracked.shown for tracked in self._jobs.values()]

    @property
    def active(self) -> bool:
        """Whether a displayed job is active."""
        return any(not job.ended for job in self.jobs)

    def messages(self) -> tuple[Message, ...]:
        """Return the contents as a paragraph's output."""
        return self._buffer.messages()

    def write(self, text: str) -> None:
        """Add text, which is not interpreted as HTML."""
        self._check()
        self._buffer.write(reword(text))

    def write_log(self, text: str) -> None:
        """Add text of a log, with ANSI colors."""
        self._check()
        self._buffer.write(text, log=True)

    def refresh(self) -> None:
        """Show the contents, also if there are none."""
        self._check()
        self._buffer.show()

    def track(self, job: Job) -> None:
        """Record that the paragraph shows a job."""
        with self._lock:
            if job.id in self._jobs:
                return
            index = ParagraphJobIndex.of(job.session.profile)
            self._jobs[job.id] = _Tracked(ShownJob(job), index, self.index_row(job))

    def index_row(self, job: Job) -> ParagraphJob:
        """Return the row of a job in the index."""
        place = self._context.note_id, self._context.paragraph_id, self._context.user
        return ParagraphJob(job.id, *place, job.session.profile.name)

    def show(self, bundle: MimeBundle, display_id: str, *, update: bool = False) -> None:
        """Convert a bundle and show it; see ``Publisher.show``.

        Raises
        ------
        ParagraphGoneError
            If another run uses the paragraph, or it was deleted.
        """
        tracked = self._tracked(bundle)
        if tracked is not None and not _is_final(bundle):
            tracked.index.put(tracked.row)
        self._show(bundle, display_id, update=update)

    def sender(self, display_id: str) -> Callable[[MimeBundle], None]:
        """Return a function that updates a display while the paragraph exists."""

        def send(bundle: MimeBundle) -> None:
            try:
                self._check_index(bundle)
                self._show(bundle, display_id, update=True)
            except ParagraphGoneError as gone:
                log.info("paragraph %s is not updated: %s", self._context.paragraph_id, gone)
                self.on_gone()

        return send

    def remove(self, display_id: str) -> None:
        """Remove a display, such as the progress line of a command that has ended."""
        with contextlib.suppress(ParagraphGoneError):
            self._check()
            self._buffer.remove(display_id)

    def uninterrupted(self) -> contextlib.AbstractContextManager[None]:
        """Return a context in which Stop does not interrupt the run."""
        return self._stop.deferred() if self._stop is not None else contextlib.nullcontext()

    def supersede(self) -> None:
        """Stop writing, because a later run uses the paragraph and possibly the same output."""
        with self._lock:
            self.superseded = True
        self.on_gone()

    def pause(self) -> None:
        """Show on the cards that they are not updated, because the interpreter stops."""
        with self._lock:
            for tracked in self._jobs.values():
                if tracked.shown.final:
                    continue
                try:
                    self._check()
                    tracked.check()
                    self._redraw(tracked, paused=True)
                except Exception as error:  # the server may have ended too
                    log.info("the card of %s was not updated: %s", tracked.row.job_id, error)

    def wait_final(self, job: Job, timeout: float) -> None:
        """Wait until the metrics of a job whose final state is shown are shown too."""
        tracked = self._jobs.get(job.id)
        if tracked is not None and tracked.shown.final:
            tracked.completed.wait(timeout)

    def _check(self) -> None:
        if self.superseded:
            raise ParagraphGoneError("another run of this process uses the paragraph")

    def _check_index(self, bundle: MimeBundle) -> None:
        """Check at most once a second whether another process uses the paragraph."""
        tracked = self._tracked(bundle)
        if tracked is None or tracked.shown.final:
            return
        if _is_final(bundle) or time.monotonic() >= tracked.checked_at + CHECK_INTERVAL:
            tracked.checked_at = time.monotonic()
            tracked.check()

    def _tracked(self, bundle: MimeBundle) -> _Tracked | None:
        job = bundle.get(MIME_TYPE)
        return self._jobs.get(job["job_id"]) if isinstance(job, dict) else None

    def _show(self, bundle: MimeBundle, display_id: str, *, update: bool) -> None:
        tracked = self._tracked(bundle)
        with self._lock:
            self._check()
            if tracked is None:
                plain = bundle.get("text/plain")
                text = reword(plain) if isinstance(plain, str) else ""
                for kind, data in convert_mime_bundle(bundle):
                    whole = f"{reword(data)}\n" if kind is Kind.TEXT else reword(data)
                    self._put(display_id, kind, whole, text, update=update)
                return
            tracked.shown.receive(display_id, bundle)
            self._put(display_id, Kind.HTML, *tracked.shown.card(display_id), update=update)
        self._read_more(tracked)

    def _put(
        self, display_id: str, kind: Kind, data: str, plain: str, *, update: bool = False
    ) -> None:
        if update:
            self._buffer.update(display_id, kind, data, plain)
        else:
            self._buffer.add(kind, data, display_id, plain)

    def _redraw(self, tracked: _Tracked, *, paused: bool = False) -> None:
        for display_id in tracked.shown.displays:
            card = tracked.shown.card(display_id, paused=paused)
            self._put(display_id, Kind.HTML, *card, update=True)

    def _read_more(self, tracked: _Tracked) -> None:
        """Read metrics in a thread if they are due, and set the paragraph's link."""
        with self._lock:
            due = time.monotonic() >= tracked.read_at + METRICS_INTERVAL
            linked = tracked.shown.link in (None, self._linked)
            final = tracked.shown.final and not tracked.completed.is_set()
            if tracked.reading or not (due or final or not linked):
                return
            tracked.reading, tracked.read_at = True, time.monotonic()
        threading.Thread(
            target=self._read, args=(tracked,), daemon=True, name="submarine-metrics"
        ).start()

    def _read(self, tracked: _Tracked) -> None:
        try:
            while not self._read_once(tracked):
                pass
        except ParagraphGoneError as gone:
            log.info("paragraph %s is not updated: %s", self._context.paragraph_id, gone)
        except Exception:
            log.exception("the metrics of %s cannot be shown", tracked.row.job_id)
        with self._lock:
            tracked.reading = False

    def _read_once(self, tracked: _Tracked) -> bool:
        """Show link and new metrics; return whether no more are to be read now."""
        final = tracked.shown.final
        try:
            self._link(tracked.shown)
        except ParagraphGoneError:
            raise
        except Exception as error:  # the server may not respond
            log.info("no link of %s: %s", tracked.row.job_id, error)
        added = tracked.shown.read_metrics()
        with self._lock:
            self._check()
            if added:
                self._redraw(tracked)
            if not final:
                # The final state may have been shown in the meantime.
                return not tracked.shown.final
        tracked.index.mark_final(tracked.row.job_id, self._context.key)
        tracked.completed.set()
        return True

    def _link(self, shown: ShownJob) -> None:
        if shown.link and shown.link != self._linked:
            self._linked = shown.link
            words = _("{id} on the cluster").format(id=shown.job.id)
            self._output.link(_("YARN LOG"), shown.link, words)


def _is_final(bundle: MimeBundle) -> bool:
    state = State(bundle[MIME_TYPE]["state"])
    return state.ended and state is not State.LOST
