"""Result of a notebook run, and the errors that it adds to the document.

Errors of cells are already in the document.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from nbclient.exceptions import CellExecutionError, DeadKernelError
from nbformat import NotebookNode

from submarine_jobs.errors import SubmarineError
from submarine_runtime.translation import _
from submarine_workflows.headless import barrier
from submarine_workflows.headless.document import add_error, last_executed, mark_failed
from submarine_workflows.headless.failures import ENDED
from submarine_workflows.headless.returning import Returned


@dataclass(frozen=True)
class Stop:
    """Why a run was stopped.

    Attributes
    ----------
    why
        One sentence, for the document and the log.
    exit_code
        Exit code of the process.
    """

    why: str
    exit_code: int


def is_success(ename: str, evalue: str) -> bool:
    """Return whether an error is ``sys.exit()`` or ``sys.exit(0)``, a success for papermill."""
    return ename == "SystemExit" and evalue in ("", "0")


def left_by_choice(error: Exception) -> bool:
    """Return whether a cell ended the run successfully."""
    return isinstance(error, CellExecutionError) and is_success(error.ename, error.evalue)


@dataclass
class Ending:
    """Result of a run.

    Attributes
    ----------
    stop
        None if the run was not stopped.
    error
        Raised by a cell, its time limit, or a dead kernel; None if all cells succeeded.
    jobs
        Final state of the jobs.
    returned
        Values of the requested variables.
    unrun
        Code cells not executed because a cell called ``sys.exit()``, which is not a failure.
    unsaved
        Why the output could not be saved, and where it is instead; None if it was saved.
    """

    stop: Stop | None = None
    error: Exception | None = None
    jobs: barrier.JobsEnd = field(default_factory=barrier.JobsEnd)
    returned: Returned = field(default_factory=Returned)
    unrun: int = 0
    unsaved: SubmarineError | None = None

    def why(self) -> str:
        """Return the reason for the record of a cancelled job."""
        stop = self.stop
        if stop is None:
            return _("a cell of its notebook failed")
        return _("its notebook was stopped: {why}").format(why=stop.why.rstrip("."))

    def tell(self, notebook: NotebookNode) -> None:
        """Add errors to the document that the cells do not contain."""
        stop = self.stop
        barrier.show_failures(notebook, self.jobs)
        cell = last_executed(notebook)
        if stop is not None and cell is not None:
            jobs = _("Its jobs continue.") if self.jobs.detached else ""
            said = f"{stop.why} {jobs}".strip()
            add_error(notebook, cell, ENDED, said, [f"{ENDED}: {said}"])
        elif isinstance(self.error, SubmarineError) and cell is not None:
            add_error(notebook, cell, "SubmarineError", str(self.error), [])
        elif isinstance(self.error, DeadKernelError) and cell is not None:
            mark_failed(notebook, cell)
