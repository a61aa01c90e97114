"""The jobs that one kernel has started, and which of them somebody has still to answer for.

A job is answered for once an error told of its failure, or it was waited for and succeeded, or
somebody here ended or left it. Does not wait (``barrier``) and does not cancel.
"""

from __future__ import annotations

import threading
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING

from submarine_jobs.client import started_jobs as started
from submarine_magics.execution import Execution, Executions, bind, headless_of

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from submarine_jobs.client import Job
    from submarine_magics.jobs.guard import Guard


@dataclass
class KernelJob:
    """One job and the cell that it was started from; None: not known."""

    job: Job
    execution: Execution | None = None
    answered: bool = False
    #: It goes on, and that is meant.
    left: bool = False


class KernelJobs:
    """The account of one kernel; hears of its jobs from any thread (``started.Account``)."""

    _all: weakref.WeakKeyDictionary[InteractiveShell, KernelJobs] = weakref.WeakKeyDictionary()

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell = weakref.ref(shell)
        self._lock = threading.Lock()
        self._jobs: dict[str, KernelJob] = {}
        self._guard: Guard | None = None

    @classmethod
    def of(cls, shell: InteractiveShell) -> KernelJobs:
        """The account of ``shell``, opened at first use; it hears of earlier jobs too."""
        found = cls._all.get(shell)
        if found is None:
            found = cls._all[shell] = cls(shell)
            started.keep(found)
        return found

    def begun(self, job: Job) -> None:
        """A job is started, or joined; see ``started.Account``."""
        bind(job)
        shell = self._shell()
        headless = headless_of(shell) if shell is not None else None
        execution = self._execution()
        with self._lock:
            if headless is None:
                self._supersede(execution)
            self._jobs.setdefault(job.id, KernelJob(job, execution))
        if headless is not None and headless.on_interrupt != "detach":
            with self._lock:
                self._guard = self._guard or new_guard()
            self._guard.watch(job)

    def _supersede(self, execution: Execution | None) -> None:
        """A person who runs a cell again has seen what became of its earlier jobs."""
        for entry in self._jobs.values():
            then = entry.execution
            if execution is None or then is None or then is execution:
                continue
            if execution.cell_id is not None and then.cell_id == execution.cell_id:
                entry.answered = True

    def refused(self, job_id: str) -> None:
        """The cluster did not take it, which its caller has been told by an error."""
        with self._lock:
            self._jobs.pop(job_id, None)
        self._release(job_id)

    def settled(self, job_id: str) -> None:
        """Its end was told or wished in this kernel; until it has come, the guard stays."""
        with self._lock:
            if job_id in self._jobs:
                self._jobs[job_id].answered = True

    def answer(self, job_id: str) -> None:
        """Take note that a job has ended and nobody needs to be told of it any more."""
        self.settled(job_id)
        self._release(job_id)

    def leave(self, job_id: str) -> None:
        """Take note that a job goes on, and that this is meant; unless it was answered for."""
        with self._lock:
            entry = self._jobs.get(job_id)
            if entry is not None and not entry.answered:
                entry.answered = entry.left = True
        self._release(job_id)

    def open(self) -> list[KernelJob]:
        """Jobs that nobody has answered for, the oldest first."""
        with self._lock:
            return [entry for entry in self._jobs.values() if not entry.answered]

    def left(self) -> list[KernelJob]:
        """Jobs that were left to go on."""
        with self._lock:
            return [entry for entry in self._jobs.values() if entry.left]

    def find(self, job_id: str) -> Job | None:
        """The job of that id, if this kernel has started it."""
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
        # A thread that a cell has started knows nothing of the cell.
        return executions.current or executions.latest


def new_guard() -> Guard:
    """A guard; made in headless runs only, and imported then."""
    from submarine_magics.jobs.guard import Guard

    return Guard()
