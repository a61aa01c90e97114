"""Base of the front ends with cells or paragraphs: job cards, progress lines, results of commands.

A subclass provides the program, the variables and a ``Publisher`` for the outputs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from submarine_jobs.frontends.base import Frontend
from submarine_jobs.frontends.job_displays import JobDisplays
from submarine_jobs.frontends.outcome import INTERRUPTED, Outcome
from submarine_jobs.text import TerminalFilter, printable

if TYPE_CHECKING:
    from submarine_jobs.client import Job
    from submarine_runtime.protocol import JobRecord

#: Maximum length of a message and of the text of a result, in characters.
_MAX_MESSAGE, MAX_TEXT = 10_000, 1 << 20


class CellFrontend(Frontend):
    """Front end whose commands show their results in the output of a cell or paragraph.

    Attributes
    ----------
    watched
        Whether the current command has waited for a job, so that the output shows its card.
    """

    command = "%submarine"

    def __init__(self, displays: JobDisplays) -> None:
        super().__init__()
        self.displays = displays
        self.watched = False
        self._quiet = False
        self._filters: defaultdict[str, TerminalFilter] = defaultdict(TerminalFilter)

    def begin_command(self, *, quiet: bool = False) -> None:
        """Reset the state of a command.

        Parameters
        ----------
        quiet
            Show no progress and no card, because the output must be JSON.
        """
        self._quiet, self.watched = quiet, False
        self.displays.place = None
        self._filters = defaultdict(TerminalFilter)

    def end_command(self) -> None:
        """Remove a progress line that no card has replaced."""
        if self.displays.place is not None:
            self.displays.publisher.remove(self.displays.place)
        self.displays.place = None

    def say(self, text: str) -> None:
        """Show a line in the output."""
        self.displays.publisher.write(printable(text, _MAX_MESSAGE) + "\n")

    def show_progress(self, text: str) -> bool:
        """Show a progress line and update it in place; the job's card replaces it."""
        if self._quiet:
            return True
        if not self.displays.rich:
            return False
        if text:
            self.displays.place = self.displays.line(printable(text, 1000), self.displays.place)
        return True

    def add_output(self, bundle: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], None] | None:
        """Show a MIME bundle; return a function that replaces it."""
        if self._quiet or not self.displays.rich:
            return None
        return self.displays.add_output(bundle)

    def watch(self, job: Job, *, on_interrupt: str = "detach", log: bool = True) -> JobRecord:
        """Show the job's card and update it until the job has ended."""
        self.watched = True
        if self._quiet:
            return job.wait(on_interrupt=on_interrupt)
        if not self.displays.shown_in_cell(job):
            self.displays.show(job)
        record = job.wait(on_interrupt=on_interrupt)
        self.displays.finish(job)
        return record

    def show_outcome(self, outcome: Outcome) -> None:
        """Show the result of a command: its job, HTML, text or JSON."""
        job = outcome.job
        if outcome.exit_code == INTERRUPTED:
            self.say(outcome.text)
        elif outcome.as_json:
            self.displays.publisher.write(outcome.rendered() + "\n")
        elif self.watched:
            if not self.displays.rich:
                self.displays.publisher.write(printable(outcome.text, MAX_TEXT) + "\n")
        elif job is None:
            self._show_text(outcome)
        elif not self.displays.shown_in_cell(job):
            self.displays.show(job)

    def _show_text(self, outcome: Outcome) -> None:
        text = printable(outcome.text, MAX_TEXT)
        if outcome.html is not None and self.displays.rich:
            bundle = {**outcome.mime, "text/html": outcome.html, "text/plain": text}
            self.displays.add_output(bundle)
        elif text:
            self.displays.publisher.write(text + "\n")
