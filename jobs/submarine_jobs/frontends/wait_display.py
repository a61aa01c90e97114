"""Show the state of a job during a wait on a terminal: one line for each change."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from submarine_jobs.display import EventLines, summary
from submarine_jobs.text import duration, one_line, running_duration
from submarine_runtime.translation import _

if TYPE_CHECKING:
    from submarine_jobs.client import Job
    from submarine_jobs.model import JobView
    from submarine_runtime.protocol import JobRecord


class StateDisplay:
    """Shows each change of state and of the reason for a wait; a context manager.

    Parameters
    ----------
    say
        Shows a line; None: nothing is shown.
    """

    def __init__(self, job: Job, say: Callable[[str], None] | None) -> None:
        self._job = job
        self._say = say
        self._began = time.monotonic()
        self._last = ""
        self._application = ""
        self._changes = EventLines()
        self._view: JobView | None = None
        self._unsubscribe: Callable[[], None] = lambda: None
        self.ended = threading.Event()

    def __enter__(self) -> StateDisplay:
        self._unsubscribe = self._job.session.watcher.subscribe(self._job, self._update)
        return self

    def __exit__(self, *_: object) -> None:
        self._unsubscribe()

    @property
    def record(self) -> JobRecord:
        """The newest record; queries the job if there is none yet."""
        return self._view.record if self._view is not None else self._job.record()

    def line(self) -> str:
        """Return the state and the time in whole seconds, for the status line."""
        return f"[{running_duration(self._elapsed()):>6}] {self._job.id} {self._last or '...'}"

    def _elapsed(self) -> float:
        """Return the duration of the job, as in cards and lists."""
        known = summary.elapsed(self._view) if self._view is not None else None
        return time.monotonic() - self._began if known is None else known

    def _update(self, view: JobView) -> None:
        """Handle a new view; called from the thread of the watcher."""
        self._view = view
        record = view.record
        if record.application_id and record.application_id != self._application:
            # Schedulers search their logs for the id, to end the applications of a node.
            self._application = record.application_id
            self._show(
                _("is {application_id} on YARN").format(
                    application_id=one_line(record.application_id)
                )
            )
        for line in self._changes.new_lines(record):
            self._show(line)
        why = view.pending or record.pending
        words = f"{record.state}{': ' + one_line(why) if why else ''}"
        if words != self._last:
            self._last = words
            self._show(words)
        if record.state.ended:
            self.ended.set()

    def _show(self, words: str) -> None:
        if self._say is not None:
            with suppress(OSError):  # stderr is closed; the wait continues
                self._say(f"[{duration(self._elapsed()):>6}] {self._job.id} {words}")
