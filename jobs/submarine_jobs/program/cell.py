"""Collected cell, and notices about the lines that are left out of the program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from submarine_jobs.program.document_order import Content, normal_body
from submarine_jobs.program.file_names import PROGRAM, check_file_name
from submarine_jobs.program.ipython_syntax import IPythonSyntaxError, RemovedLine, clean_source
from submarine_runtime.translation import _


@dataclass(frozen=True)
class Cell:
    """Collected cell.

    Parameters
    ----------
    cell_id
        Id from the front end; None if it sends none.
    source
        The body, without the ``%%submarine`` line.
    filename
        File of the program that the cell belongs to.
    label
        Label for the user: ``[3]`` for execution count 3, a paragraph's title in Zeppelin, ``#4``
        for the fourth cell of a document without execution counts.
    execution_count
        None if it was not executed.
    first_line
        Number of the body's first line in the cell as an editor counts: 2 below a magic line.
    only
        Collected without running it in the notebook.
    write_mode
        "w" or "a" for a ``%%writefile`` cell, whose text is the unchanged content of a file.

    Raises
    ------
    UsageError
        If ``filename`` is not a valid file name of a program.
    """

    cell_id: str | None
    source: str
    filename: str = PROGRAM
    label: str = "[ ]"
    execution_count: int | None = None
    first_line: int = 2
    only: bool = False
    write_mode: str = ""

    def __post_init__(self) -> None:
        check_file_name(self.filename)
        object.__setattr__(self, "source", normal_body(self.source))

    @property
    def content(self) -> Content:
        """File name and text: equal for cells that produce the same program."""
        return self.filename, self.source


@dataclass(frozen=True)
class Notice:
    """A sentence about one line of one cell (``line`` as an editor counts).

    ``code`` names a finding of level warning; empty: the sentence is a note.
    """

    message: str
    label: str
    line: int
    code: str = ""
    fix: str = ""


def notices_of(cell: Cell) -> tuple[Notice, ...]:
    """Return notices of the IPython syntax that is left out of ``cell``.

    Raises
    ------
    IPythonSyntaxError
        If something cannot be left out; the message names cell and line.
    """
    if cell.write_mode:
        return ()
    try:
        removed = clean_source(cell.source).removed
    except IPythonSyntaxError as error:
        line = error.line + cell.first_line - 1
        raise IPythonSyntaxError(
            line,
            _("Cell {label}, line {line}: {error}").format(
                label=cell.label, line=line, error=error.message
            ),
            error.fix,
        ) from None
    return tuple(_notice(cell, item) for item in removed)


def _notice(cell: Cell, item: RemovedLine) -> Notice:
    line = item.line + cell.first_line - 1
    shown = item.text.split("\n")[0]
    shown = shown if len(shown) <= 60 else shown[:59] + "…"
    message = (
        _("Cell {label}, line {line}: {what} was left out of the program: {shown}").format(
            label=cell.label, line=line, what=item.what, shown=shown
        )
        if "stays" not in item.what
        else _("Cell {label}, line {line}: {what} was left out: {shown}").format(
            label=cell.label, line=line, what=item.what, shown=shown
        )
    )
    return Notice(message, cell.label, line)


def join_labels(labels: Sequence[str], maximum: int = 6) -> str:
    """Join labels for a sentence: ``[1], [2] and [5]``, at most ``maximum`` of them."""
    shown = list(labels)
    if len(shown) > maximum:
        shown = [*shown[: maximum - 1], _("{count} more").format(count=len(shown) - maximum + 1)]
    if len(shown) < 2:
        return "".join(shown)
    return _("{first} and {last}").format(first=", ".join(shown[:-1]), last=shown[-1])
