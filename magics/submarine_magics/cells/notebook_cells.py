"""Feeds the core's collection from a running kernel: what ran, what was deleted, what was saved.

The rules of identity and order are ``submarine_jobs.program.cells``'s; nothing is merged or judged
here.
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
    Collected,
    MarkedCell,
    NotebookError,
    parse_cell,
    parse_options,
    read_notebook,
)
from submarine_jobs.text import one_line
from submarine_magics.execution import Execution

_MAX_RUNS = 2000


@dataclass(frozen=True)
class CellRun:
    """Where a collected cell runs in this kernel: the file name that IPython gave its code."""

    filename: str
    source: str
    cell_id: str | None = None
    tags: tuple[str, ...] = ()


class NotebookCells:
    """The collected cells of one kernel.

    Parameters
    ----------
    find_document
        Tells the path of the notebook document at the moment, or None.
    """

    def __init__(self, find_document: Callable[[], Path | None]) -> None:
        self.collection = CellCollection()
        self._find_document = find_document
        self._document_seen: tuple[Path, int, int] | None = None
        #: Code names by label of the run, ``[3]``: for tracebacks that lead into this kernel.
        self.runs: OrderedDict[str, CellRun] = OrderedDict()

    def collect(self, execution: Execution, code_name: str | None, *, only: bool) -> Collected:
        """Collect the cell that is being executed.

        Raises
        ------
        UsageError
            If ``%%submarine`` is not its first line and no tag is ours, line or tag are wrong,
            nothing stands below it, or its text cannot be part of a program.
        """
        marked = parse_cell(execution.source, execution.tags)
        if marked is None:
            raise UsageError(
                "%%submarine is not on the first line of its cell.",
                "Move it up, or collect the cell from the notebook itself.",
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
        """The executed cell as a paragraph of ``filename``; refuses one without a body."""
        if not marked.body.strip():
            raise UsageError(
                "%%submarine stands above an empty cell.", "Write the code to collect below it."
            )
        return Cell(
            execution.cell_id,
            marked.body,
            filename,
            execution.label,
            execution.count,
            marked.first_line,
            only,
            marked.write_mode,
        )

    def remember_run(self, execution: Execution, code_name: str | None) -> None:
        """Keep the code name of this run, so that a traceback can lead back to it."""
        if code_name is not None and execution.count is not None:
            self.runs[execution.label] = CellRun(
                code_name, execution.source, execution.cell_id, execution.tags
            )
            while len(self.runs) > _MAX_RUNS:
                self.runs.popitem(last=False)

    def note_exception(self, execution: Execution, error: BaseException) -> None:
        """Note that a collected cell ended with ``error``."""
        run = self.runs.get(execution.label)
        frames = traceback.walk_tb(error.__traceback__)
        lines = [line for frame, line in frames if run and frame.f_code.co_filename == run.filename]
        where = f" in line {lines[-1]}" if lines else ""
        raised = f"{one_line(type(error).__name__, 100)}{where}"
        self.collection.mark_raised(execution.cell_id, execution.label, raised)

    def tags_of(self, label: str) -> tuple[str, ...]:
        """The tags with which the cell called ``label`` was collected."""
        run = self.runs.get(label)
        return run.tags if run is not None else ()

    def executed(self, execution: Execution) -> None:
        """Take note of any cell that starts: deleted ones, and ones that lost their mark, go."""
        gone = set(execution.deleted)
        if execution.cell_id is not None and not _stays_collected(execution):
            gone.add(execution.cell_id)
        if gone:
            self.collection.remove(gone)

    def follow_document(self) -> None:
        """Read the saved document again if it has changed."""
        path = self._find_document()
        if path is None:
            self.collection.lose_document()
            self._document_seen = None
            return
        try:
            status = path.stat()
            seen = (path, status.st_mtime_ns, status.st_size)
            if seen != self._document_seen:
                self.collection.follow(read_notebook(path))
                self._document_seen = seen
        except (OSError, NotebookError):
            # Without a readable document the order known so far holds.
            return


def _stays_collected(execution: Execution) -> bool:
    marked = parse_cell(execution.source, execution.tags)
    if marked is None:
        return False
    try:
        return parse_options(marked.line).verb is None
    except UsageError:
        # A slip in the line refuses the cell; what was collected before stays.
        return True
