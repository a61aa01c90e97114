"""Result of a notebook run, and the errors that it adds to the document.

Errors of cells are already in the document.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nbclient.exceptions import CellExecutionError, DeadKernelError
from nbformat import NotebookNode

from submarine_jobs.errors import SubmarineError
from submarine_runtime.translation import _
from submarine_workflows.headless.document import (
    add_error,
    code_cells,
    last_executed,
    mark_failed,
)
from submarine_workflows.headless.failures import ENDED
from submarine_workflows.headless.kernel import JobOutcomes, ReturnedValues


@dataclass(frozen=True)
class StopReason:
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


def is_successful_exit(error: Exception) -> bool:
    """Return whether a cell ended the run successfully."""
    return isinstance(error, CellExecutionError) and is_success(error.ename, error.evalue)


@dataclass
class RunResult:
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
    skipped_cells
        Code cells not executed because a cell called ``sys.exit()``, which is not a failure.
    save_error
        Why the output could not be saved, and where it is instead; None if it was saved.
    """

    stop: StopReason | None = None
    error: Exception | None = None
    jobs: JobOutcomes = field(default_factory=JobOutcomes)
    returned: ReturnedValues = field(default_factory=ReturnedValues)
    skipped_cells: int = 0
    save_error: SubmarineError | None = None

    def cancellation_reason(self) -> str:
        """Return the reason for the record of a cancelled job."""
        stop = self.stop
        if stop is None:
            return _("a cell of its notebook failed")
        return _("its notebook was stopped: {why}").format(why=stop.why.rstrip("."))

    def add_errors(self, notebook: NotebookNode) -> None:
        """Add errors to the document that the cells do not contain."""
        stop = self.stop
        show_failures(notebook, self.jobs)
        cell = last_executed(notebook)
        if stop is not None and cell is not None:
            jobs = _("Its jobs continue.") if self.jobs.detached else ""
            message = f"{stop.why} {jobs}".strip()
            add_error(notebook, cell, ENDED, message, [f"{ENDED}: {message}"])
        elif isinstance(self.error, SubmarineError) and cell is not None:
            add_error(notebook, cell, "SubmarineError", str(self.error), [])
        elif isinstance(self.error, DeadKernelError) and cell is not None:
            mark_failed(notebook, cell)


def show_failures(notebook: NotebookNode, jobs: JobOutcomes) -> None:
    """Add each failure below the cell that started the job, unless the cell has an error."""
    for item in jobs.failed:
        cell = _cell_of(notebook, item)
        if cell is None or any(output.output_type == "error" for output in cell.outputs):
            continue
        lines = item.get("traceback")
        add_error(
            notebook,
            cell,
            str(item.get("ename") or "JobFailedError")[:200],
            str(item.get("evalue") or item.get("job_id") or _("A job failed."))[:4000],
            [str(line)[:10_000] for line in lines] if isinstance(lines, list) else [],
        )


def _cell_of(notebook: NotebookNode, item: Mapping[str, Any]) -> NotebookNode | None:
    for key, name in (("cell_id", "id"), ("execution_count", "execution_count")):
        wanted = item.get(key)
        for cell in code_cells(notebook) if wanted else ():
            if cell.get(name) == wanted:
                return cell
    return last_executed(notebook)
