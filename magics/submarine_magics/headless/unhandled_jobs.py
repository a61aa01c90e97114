"""Wait for the unhandled jobs of a kernel in a headless run, or cancel them.

Used at the end of the run (``barrier``) and at the end of a cell (``cell_end``). Failures are
collected in ``UnhandledJobs.failed``; only an interrupt is raised.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from submarine_jobs.client import pending_submits
from submarine_jobs.errors import SubmarineError
from submarine_magics.execution import (
    headless_settings,
    ignore_interrupts,
    take_thread_errors,
    threads_of_cells,
)
from submarine_magics.frontend import job_failed
from submarine_magics.jobs import KernelJob, KernelJobs
from submarine_magics.magics import SubmarineMagics
from submarine_runtime.protocol import State
from submarine_runtime.translation import _

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from submarine_magics.execution import Execution

INTERRUPTED = _("its notebook was interrupted")
#: Seconds for cancelling all jobs: a scheduler kills a run half a minute after the request to end.
#: The guard cancels the jobs that are left.
_CANCEL_SECONDS = 12.0
_POLL_SECONDS = 0.2


@dataclass(frozen=True)
class JobFailure:
    """An error, the cell that caused it, and the job; the id is empty if no job was started."""

    error: SubmarineError
    execution: Execution | None
    job_id: str = ""


class UnhandledJobs:
    """The jobs of one kernel that have not been handled."""

    def __init__(self, shell: InteractiveShell) -> None:
        self._magics = SubmarineMagics.of(shell)
        self.shell = shell
        self.displays = self._magics.frontend.displays
        self.jobs = KernelJobs.of(shell)
        #: Failures in the order in which they were found.
        self.failed: list[JobFailure] = []

    def wait(self, report: Callable[[list[threading.Thread]], None] | None = None) -> None:
        """Wait until all jobs have ended, including jobs that a thread is submitting.

        Parameters
        ----------
        report
            If given, threads of cells are waited for too, and it is called repeatedly with the
            threads that run while no job does. A thread of a pool may be idle between two tasks,
            so the wait ends only when no thread was running at two checks in succession.
        """
        busy = False
        while True:
            jobs = self.jobs.unhandled()
            for entry in jobs:
                self._show(entry)
            for entry in jobs:
                self._wait_for(entry)
                self._show(entry)
            if self.jobs.unhandled():
                continue
            threads = threads_of_cells(self.shell) if report is not None else []
            if report is not None:
                report([] if jobs else threads)
            before, busy = busy, bool(threads or pending_submits())
            if not (before or busy):
                break
            time.sleep(_POLL_SECONDS)
        self.failed += [JobFailure(*found) for found in take_thread_errors()]

    def show_missing_cards(self) -> None:
        """Show a card for each unhandled job that no output shows."""
        for entry in self.jobs.unhandled():
            self._show(entry)

    def _show(self, entry: KernelJob) -> None:
        if not self.displays.shown(entry.job):
            # A job that cannot be shown cannot be waited for either, which is reported.
            with contextlib.suppress(SubmarineError):
                self.displays.show(entry.job)

    def _wait_for(self, entry: KernelJob) -> None:
        try:
            succeeded = entry.job.wait().state is State.SUCCEEDED
            if entry.handled:  # A thread has cancelled the job in the meantime.
                return
            if not succeeded:
                raise job_failed(entry.job, self.shell, self._magics.cells)
        except SubmarineError as error:
            self.failed.append(JobFailure(error, entry.execution, entry.job.id))
        self.jobs.mark_handled(entry.job.id)

    def stop(self, why: str) -> list[KernelJob]:
        """Cancel the jobs, or detach them if the run is configured so; return them."""
        headless = headless_settings(self.shell)
        entries = self.jobs.unhandled()
        if headless is not None and headless.on_interrupt == "detach":
            for entry in entries:
                self.jobs.detach(entry.job.id)
            return entries
        threads = [
            threading.Thread(target=self._cancel, args=(entry, why), daemon=True)
            for entry in entries
        ]
        with ignore_interrupts():
            for thread in threads:
                thread.start()
        # A second interrupt ends the wait for the cluster's answers, not the cancellation.
        with contextlib.suppress(KeyboardInterrupt):
            deadline = time.monotonic() + _CANCEL_SECONDS
            for thread in threads:
                while thread.is_alive() and time.monotonic() < deadline:
                    thread.join(_POLL_SECONDS)
        return entries

    def _cancel(self, entry: KernelJob, why: str) -> None:
        try:
            if entry.job.cancel(why).state.ended:
                self.jobs.mark_handled(entry.job.id)
        except SubmarineError as error:
            # The guard retries after the end of this kernel.
            self.failed.append(JobFailure(error, entry.execution, entry.job.id))

    def finish_cards(self) -> None:
        """Update every card to the present state of its job."""
        self.displays.finish_all()
