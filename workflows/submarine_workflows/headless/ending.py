"""How a run of a notebook ended, and what the document says of it below its cells.

Ends nothing itself, and knows no kernel; a failed cell has said by itself what went wrong.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from nbclient.exceptions import CellExecutionError, DeadKernelError
from nbformat import NotebookNode

from submarine_jobs.errors import SubmarineError
from submarine_workflows.headless import barrier
from submarine_workflows.headless.document import add_error, last_executed, mark_failed
from submarine_workflows.headless.failures import ENDED
from submarine_workflows.headless.returning import Returned


@dataclass(frozen=True)
class Stop:
    """Why a run was ended from outside.

    Attributes
    ----------
    why
        One sentence, for the document and for the log.
    exit_code
        What the process should end with.
    """

    why: str
    exit_code: int


def is_success(ename: str, evalue: str) -> bool:
    """Whether an error is ``sys.exit()`` or ``sys.exit(0)``, which papermill calls a success."""
    return ename == "SystemExit" and evalue in ("", "0")


def left_by_choice(error: Exception) -> bool:
    """Whether a cell ended the run, and well."""
    return isinstance(error, CellExecutionError) and is_success(error.ename, error.evalue)


@dataclass
class Ending:
    """How a run ended.

    Attributes
    ----------
    stop
        None: nobody stopped it.
    error
        Raised by a cell, by its limit, or by the death of the kernel; None: all cells ended well.
    jobs
        What became of the jobs.
    returned
        Values of the wanted variables.
    unrun
        Code cells that were left out because a cell called ``sys.exit()``, which is no failure.
    unsaved
        Why the output is not where it should be, and where it is; None: it is there.
    """

    stop: Stop | None = None
    error: Exception | None = None
    jobs: barrier.JobsEnd = field(default_factory=barrier.JobsEnd)
    returned: Returned = field(default_factory=Returned)
    unrun: int = 0
    unsaved: SubmarineError | None = None

    def why(self) -> str:
        """For the record of a job that is cancelled."""
        stop = self.stop
        if stop is None:
            return "a cell of its notebook failed"
        return f"its notebook was ended: {stop.why.rstrip('.')}"

    def tell(self, notebook: NotebookNode) -> None:
        """Put what the cells do not say themselves below them."""
        stop = self.stop
        barrier.show_failures(notebook, self.jobs)
        cell = last_executed(notebook)
        if stop is not None and cell is not None:
            jobs = "Its jobs go on." if self.jobs.detached else ""
            said = f"{stop.why} {jobs}".strip()
            add_error(notebook, cell, ENDED, said, [f"{ENDED}: {said}"])
        elif isinstance(self.error, SubmarineError) and cell is not None:
            add_error(notebook, cell, "SubmarineError", str(self.error), [])
        elif isinstance(self.error, DeadKernelError) and cell is not None:
            mark_failed(notebook, cell)
