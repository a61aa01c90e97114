"""Maintain the collected cells of a running kernel: executed, deleted and saved cells.

``CellCollection`` implements the rules of identity and order.
"""

from __future__ import annotations

import traceback
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from submarine_jobs.errors import UsageError
from submarine_jobs.program import (
    Cell,
    CellCollection,
    CollectResult,
    MarkedCell,
    NotebookError,
    parse_cell,
    parse_options,
    read_notebook,
)
from submarine_jobs.text import one_line
from submarine_magics.execution import Execution
from submarine_runtime.translation import _

_MAX_RUNS = 2000


@dataclass(frozen=True)
class CellRun:
    """One run of a collected cell in this kernel, and the file name of its compiled code."""

    filename: str
    source: str
    cell_id: str | None = None
    tags: tuple[str, ...] = ()


class NotebookCells:
    """The collected cells of one kernel.

    Parameters
    ----------
    find_document
        Returns the current path of the notebook document, or None.
    """

    def __init__(self, find_document: Callable[[], Path | None]) -> None:
        self.collection = CellCollection()
        self._find_document = find_document
        #: Path, modification time and size of the document that was read last.
        self._document_state: tuple[Path, int, int] | None = None
        #: Runs by label, ``[3]``: a traceback of a job refers to them.
        self.runs: OrderedDict[str, CellRun] = OrderedDict()

    def collect(self, execution: Execution, code_name: str | None, *, only: bool) -> CollectResult:
        """Collect the cell that is being executed.

        Raises
        ------
        UsageError
            If the cell has neither ``%%submarine`` on its first line nor a tag of Submarine, if the
            line or tag is invalid, or if the body is empty or cannot be part of a program.
        """
        marked = parse_cell(execution.source, execution.tags)
        if marked is None:
            raise UsageError(
                _("%%submarine is not on the first line of its cell."),
                _("Move it up, or collect the cell from the notebook itself."),
            )
        options = parse_options(marked.line)
        cell = self.cell_of(execution, marked, options.filename, only=only)
        self.follow_document()
        collected = self.collection.add(cell)
        self.remember_run(execution, code_name)
        return collected

    def cell_of(
        self, execution: Execution, marked: MarkedCell, filename: str, *, only: bool = False
    ) -> Cell:
        """Return the executed cell as a part of ``filename``; reject an empty body.

        Raises
        ------
        UsageError
            If the body is empty.
        """
        if not marked.body.strip():
            raise UsageError(
                _("There is no code below %%submarine."), _("Write the code to collect below it.")
            )
        return Cell(
            execution.cell_id,
            marked.body,
            filename,
            execution.label,
            execution.number,
            marked.first_line,
            only,
            marked.write_mode,
        )

    def remember_run(self, execution: Execution, code_name: str | None) -> None:
        """Keep the code name of this run, to which a traceback may refer."""
        if code_name is not None and execution.number is not None:
            self.runs[execution.label] = CellRun(
                code_name, execution.source, execution.cell_id, execution.tags
            )
            while len(self.runs) > _MAX_RUNS:
                self.runs.popitem(last=False)

    def note_exception(self, execution: Execution, error: BaseException) -> None:
        """Record that a collected cell raised ``error``."""
        run = self.runs.get(execution.label)
        frames = traceback.walk_tb(error.__traceback__)
        lines = [line for frame, line in frames if run and frame.f_code.co_filename == run.filename]
        where = _(" in line {lines}").format(lines=lines[-1]) if lines else ""
        raised = f"{one_line(type(error).__name__, 100)}{where}"
        self.collection.mark_raised(execution.cell_id, execution.label, raised)

    def tags_of(self, label: str) -> tuple[str, ...]:
        """Return the tags with which the cell of the run ``label`` was collected."""
        run = self.runs.get(label)
        return run.tags if run is not None else ()

    def on_execution(self, execution: Execution) -> None:
        """Remove deleted cells, and the executed cell if it is no longer marked."""
        gone = set(execution.deleted)
        if execution.cell_id is not None and not _stays_collected(execution):
            gone.add(execution.cell_id)
        if gone:
            self.collection.remove(gone)

    def follow_document(self) -> None:
        """Read the saved document if it has changed."""
        path = self._find_document()
        if path is None:
            self.collection.lose_document()
            self._document_state = None
            return
        try:
            status = path.stat()
            state = (path, status.st_mtime_ns, status.st_size)
            if state != self._document_state:
                self.collection.follow(read_notebook(path))
                self._document_state = state
        except (OSError, NotebookError):
            return  # An unreadable document does not change the order.


def _stays_collected(execution: Execution) -> bool:
    marked = parse_cell(execution.source, execution.tags)
    if marked is None:
        return False
    try:
        return parse_options(marked.line).verb is None
    except UsageError:
        # The magic rejects the line; the cell that was collected before stays.
        return True
