"""Answers for the jobs of a kernel that nobody has answered for: waits for them, or ends them.

The end of a headless run (``barrier``) and the end of a cell (``cell_end``) do it. Gathers what has
failed and raises nothing but an interrupt; does not say when.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from submarine_jobs.client import started_jobs as started
from submarine_jobs.errors import SubmarineError
from submarine_magics.execution import headless_of, thread_errors, threads_of_cells, undisturbed
from submarine_magics.frontend import job_failed
from submarine_magics.jobs import KernelJob, KernelJobs
from submarine_magics.magics import SubmarineMagics
from submarine_runtime.protocol.states import State

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from submarine_magics.execution import Execution

INTERRUPTED = "its notebook was interrupted"
#: Seconds that the ends of interrupted jobs may take together: a scheduler that ends a run kills it
#: after half a minute. What has not ended by then is the guard's.
_END = 12.0
_SLICE = 0.2


@dataclass(frozen=True)
class Failed:
    """A failure, the cell that it comes from, and the job; empty: none was started."""

    error: SubmarineError
    execution: Execution | None
    job_id: str = ""


class Answering:
    """What is done about the open jobs of one kernel."""

    def __init__(self, shell: InteractiveShell) -> None:
        self._magics = SubmarineMagics.of(shell)
        self.shell = shell
        self.displays = self._magics.frontend.displays
        self.jobs = KernelJobs.of(shell)
        #: In the order in which they were found.
        self.failed: list[Failed] = []

    def wait(self, threads: Callable[[list[threading.Thread]], None] | None = None) -> None:
        """Until all have ended, those too that a thread of some cell is just submitting.

        Parameters
        ----------
        threads
            Given where nothing comes after this: threads of cells are then waited for as well,
            and it hears again and again of those that are waited for alone. A pool's thread is
            between two pieces of its work at times: quiet is believed when it is seen twice.
        """
        busy = False
        while True:
            waited = self.jobs.open()
            for entry in waited:
                self._present(entry)
            for entry in waited:
                self._judge(entry)
                self._present(entry)
            if self.jobs.open():
                continue
            alive = threads_of_cells(self.shell) if threads is not None else []
            if threads is not None:
                threads([] if waited else alive)
            before, busy = busy, bool(alive or started.submits_under_way())
            if not (before or busy):
                break
            time.sleep(_SLICE)
        self.failed += [Failed(*found) for found in thread_errors.take()]

    def present(self) -> None:
        """A card for each open job that no output shows yet."""
        for entry in self.jobs.open():
            self._present(entry)

    def _present(self, entry: KernelJob) -> None:
        if not self.displays.shows(entry.job):
            # Who began it is about to hear why it cannot be seen.
            with contextlib.suppress(SubmarineError):
                self.displays.show(entry.job)

    def _judge(self, entry: KernelJob) -> None:
        try:
            succeeded = entry.job.wait().state is State.SUCCEEDED
            if entry.answered:  # cancelled by a thread of some cell meanwhile
                return
            if not succeeded:
                raise job_failed(entry.job, self.shell, self._magics.cells)
        except SubmarineError as error:
            self.failed.append(Failed(error, entry.execution, entry.job.id))
        self.jobs.answer(entry.job.id)

    def stop(self, why: str) -> list[KernelJob]:
        """Cancel what goes on, or leave it alone; gives the jobs that it was about."""
        headless = headless_of(self.shell)
        entries = self.jobs.open()
        if headless is not None and headless.on_interrupt == "detach":
            for entry in entries:
                self.jobs.leave(entry.job.id)
            return entries
        threads = [
            threading.Thread(target=self._cancel, args=(entry, why), daemon=True)
            for entry in entries
        ]
        with undisturbed():
            for thread in threads:
                thread.start()
        # A second interrupt ends the waiting for what the cluster says to it, not the wish.
        with contextlib.suppress(KeyboardInterrupt):
            deadline = time.monotonic() + _END
            for thread in threads:
                while thread.is_alive() and time.monotonic() < deadline:
                    thread.join(_SLICE)
        return entries

    def _cancel(self, entry: KernelJob, why: str) -> None:
        try:
            if entry.job.cancel(why).state.ended:
                self.jobs.answer(entry.job.id)
        except SubmarineError as error:
            # The guard goes on with it when this kernel has ended.
            self.failed.append(Failed(error, entry.execution, entry.job.id))

    def show(self) -> None:
        """Bring every card to its last state."""
        self.displays.finish_all()
