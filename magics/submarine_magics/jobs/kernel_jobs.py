"""Jobs that one kernel has started, and which of them have not been handled yet.

A job is *handled* when an exception reported its failure, when it was waited for and succeeded, or
when a command in this kernel cancelled or detached it.
"""

from __future__ import annotations

import threading
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING

from submarine_jobs.client import add_listener
from submarine_magics.execution import Execution, Executions, bind, headless_settings

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from submarine_jobs.client import Job
    from submarine_magics.jobs.guard import Guard


@dataclass
class KernelJob:
    """A job and the cell that started it; None if the cell is unknown."""

    job: Job
    execution: Execution | None = None
    handled: bool = False
    #: The job continues after the kernel.
    detached: bool = False


class KernelJobs:
    """The jobs of one kernel; methods may be called from any thread (``started.JobListener``)."""

    _all: weakref.WeakKeyDictionary[InteractiveShell, KernelJobs] = weakref.WeakKeyDictionary()

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell = weakref.ref(shell)
        self._lock = threading.Lock()
        self._jobs: dict[str, KernelJob] = {}
        self._guard: Guard | None = None

    @classmethod
    def of(cls, shell: InteractiveShell) -> KernelJobs:
        """Return the instance for ``shell``; the first call creates it, with earlier jobs."""
        found = cls._all.get(shell)
        if found is None:
            found = cls._all[shell] = cls(shell)
            add_listener(found)
        return found

    def job_started(self, job: Job) -> None:
        """Add a job that is being submitted or was attached to; see ``started.JobListener``."""
        bind(job)
        shell = self._shell()
        headless = headless_settings(shell) if shell is not None else None
        execution = self._execution()
        with self._lock:
            if headless is None:
                self._mark_superseded(execution)
            self._jobs.setdefault(job.id, KernelJob(job, execution))
        if headless is not None and headless.on_interrupt != "detach":
            with self._lock:
                self._guard = self._guard or new_guard()
            self._guard.watch(job)

    def _mark_superseded(self, execution: Execution | None) -> None:
        """Mark jobs of earlier runs of the same cell as handled, in an interactive session."""
        for entry in self._jobs.values():
            then = entry.execution
            if execution is None or then is None or then is execution:
                continue
            if execution.cell_id is not None and then.cell_id == execution.cell_id:
                entry.handled = True

    def job_refused(self, job_id: str) -> None:
        """Remove a job that the cluster rejected; its caller receives an exception."""
        with self._lock:
            self._jobs.pop(job_id, None)
        self._release(job_id)

    def job_settled(self, job_id: str) -> None:
        """Mark a job after its end was reported or requested; the guard then releases it."""
        with self._lock:
            if job_id in self._jobs:
                self._jobs[job_id].handled = True

    def mark_handled(self, job_id: str) -> None:
        """Mark a job that has ended and needs no further report."""
        self.job_settled(job_id)
        self._release(job_id)

    def detach(self, job_id: str) -> None:
        """Mark a job that continues intentionally, unless it was handled."""
        with self._lock:
            entry = self._jobs.get(job_id)
            if entry is not None and not entry.handled:
                entry.handled = entry.detached = True
        self._release(job_id)

    def unhandled(self) -> list[KernelJob]:
        """Return the jobs that have not been handled, the oldest first."""
        with self._lock:
            return [entry for entry in self._jobs.values() if not entry.handled]

    def detached(self) -> list[KernelJob]:
        """Return the jobs that were detached."""
        with self._lock:
            return [entry for entry in self._jobs.values() if entry.detached]

    def find(self, job_id: str) -> Job | None:
        """Return the job with this id if this kernel has started it."""
        with self._lock:
            entry = self._jobs.get(job_id)
            return entry.job if entry is not None else None

    def _release(self, job_id: str) -> None:
        if self._guard is not None:
            self._guard.release(job_id)

    def _execution(self) -> Execution | None:
        shell = self._shell()
        executions = Executions.of(shell) if shell is not None else None
        if executions is None:
            return None
        # Threads have no current execution.
        return executions.current or executions.latest


def new_guard() -> Guard:
    """Create a guard, in headless runs only."""
    # cost: subprocess and json, which only a headless run needs.
    from submarine_magics.jobs.guard import Guard

    return Guard()
