"""Code that the runner executes in the kernel after the last cell, and its results.

The kernel waits for the jobs itself (``submarine_magics.headless.barrier``), because only it knows
the jobs of its cells. This module contains the calls, and adds reported failures below their cells.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nbformat import NotebookNode
from papermill.log import logger

from submarine_jobs.text import printable
from submarine_runtime.translation import _
from submarine_workflows.headless.document import add_error, code_cells, last_executed

MIME_TYPE = "application/vnd.submarine.barrier.v1+json"
_MAX_TOLD = 200
_MAX_NAMED = 5
#: Imports nothing, and so costs no time, in a kernel without jobs.
_ONLY_WITH_JOBS = (
    'if {{"submarine_magics", "submarine_jobs"}}.intersection(__import__("sys").modules):\n'
    '    __import__("importlib").import_module("submarine_magics.headless.barrier").{call}'
)
WAIT = _ONLY_WITH_JOBS.format(call="wait_for_jobs()")


def end(why: str) -> str:
    """Return the code that cancels or detaches the jobs, as configured at the kernel's start."""
    return _ONLY_WITH_JOBS.format(call=f"end_jobs({why!r})")


@dataclass
class JobsEnd:
    """Final state of the notebook's jobs.

    Attributes
    ----------
    failed
        One entry per failure: ``job_id cell_id execution_count ename evalue traceback``.
    detached
        Ids of jobs that continue.
    told
        Whether the kernel has reported anything.
    """

    failed: list[dict[str, Any]] = field(default_factory=list)
    detached: list[str] = field(default_factory=list)
    told: bool = False

    def take(self, data: Mapping[str, Any]) -> None:
        """Add one display of the hidden cell; invalid content is ignored."""
        said = data.get(MIME_TYPE)
        if not isinstance(said, dict):
            return
        threads = said.get("threads")
        if isinstance(threads, list):
            names = ", ".join(printable(str(name), 80) for name in threads[:_MAX_NAMED])
            logger.warning("Waiting for threads of the notebook that are not daemons: %s.", names)
            return
        self.told = True
        failed, detached = said.get("failed"), said.get("detached")
        for item in failed[:_MAX_TOLD] if isinstance(failed, list) else []:
            if isinstance(item, dict):
                self.failed.append(item)
        for item in detached[:_MAX_TOLD] if isinstance(detached, list) else []:
            name = item.get("job_id") if isinstance(item, dict) else item
            self.detached.append(printable(str(name), 200))


def show_failures(notebook: NotebookNode, jobs: JobsEnd) -> None:
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
