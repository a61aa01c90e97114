"""Errors as a cell shows them: one sentence, or the traceback of a failed program.

A failed job is shown as a normal IPython traceback of the cells that its program was made from. The
program failed in another process, so the frames are built from the record: each is the frame of a
small code object with IPython's name of the cell's code, the line and the function, so that IPython
quotes the cell. Only cells that ran in this kernel and have the text of the bundle are quoted.
"""

from __future__ import annotations

import linecache
import re
import types
from typing import TYPE_CHECKING, Any

from submarine_jobs.client import describe_ending
from submarine_jobs.display import failure_text, frames_shown, sanitize
from submarine_jobs.errors import JobFailedError, SubmarineError
from submarine_jobs.program import parse_cell
from submarine_jobs.text import one_line, printable
from submarine_runtime.protocol import Failure, TracebackFrame

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from submarine_jobs.client import Job
    from submarine_magics.cells import NotebookCells

#: Next steps for a terminal that a cell offers as magics. Messages that mean a terminal say so.
_MAGICS = re.compile(
    r"(?<!in a terminal )`submarine (?=(?:doctor|login)\b[^`]*`(?! in a terminal))"
)
_MAX_SENTENCE = 4000
_MAX_LINE = 100_000


def without_traceback(error: SubmarineError) -> SubmarineError:
    """Prepare an error for a cell, and return it.

    IPython shows it as one sentence, in which the next step is a magic: ``%submarine login``.
    """
    error.fix = _MAGICS.sub("`%submarine ", error.fix)
    error.args = tuple(_MAGICS.sub("`%submarine ", f"{text}") for text in error.args)
    if "_render_traceback_" not in error.__dict__:
        error.__dict__["_render_traceback_"] = lambda: sentence_lines(error)
    return error


def sentence_lines(error: BaseException) -> list[str]:
    """Return ``UsageError: sentence``, with the name in red and the sentence escaped."""
    return [f"\x1b[31m{type(error).__name__}\x1b[39m: {printable(str(error), _MAX_SENTENCE)}"]


class ProgramError(Exception):
    """Base of the exceptions that represent the program's; each has the program's type name."""


def job_failed(job: Job, shell: InteractiveShell, cells: NotebookCells) -> JobFailedError:
    """Return the error to raise for a job that ended without success."""
    record = sanitize(job.record())
    error = JobFailedError(describe_ending(record))
    error.job = job
    error.__dict__["_render_traceback_"] = lambda: _lines(error, record.failure, shell, cells)
    return error


def _lines(
    error: JobFailedError,
    failure: Failure | None,
    shell: InteractiveShell,
    cells: NotebookCells,
) -> list[str]:
    """Return the lines that IPython prints."""
    own = sentence_lines(error)
    if failure is None:
        return own
    traceback = build_traceback(failure, cells)
    if traceback is None:
        return [failure_text(failure), "", *own]
    name = one_line(failure.type, 200).rpartition(".")[2] or "Exception"
    kind = type(name, (ProgramError,), {})
    value = kind(printable(failure.message, 2000))
    lines: list[str] = shell.InteractiveTB.structured_traceback(kind, value, traceback, 0)
    return [*lines, "", *own]


def build_traceback(failure: Failure, cells: NotebookCells) -> types.TracebackType | None:
    """Build frames for ``failure``; None if no frame is in an unchanged cell of this kernel."""
    found = [(frame, code_name_of(frame, cells)) for frame in _frames(failure)]
    if not any(name is not None for _, name in found):
        return None
    traceback: types.TracebackType | None = None
    for frame, name in reversed(found):
        line = frame.cell_line if name is not None and frame.cell_line else frame.line
        made = _frame(name or f"<job {one_line(frame.file, 200)}>", line, frame.function)
        if made is not None:
            traceback = types.TracebackType(traceback, made.tb_frame, made.tb_lasti, made.tb_lineno)
    return traceback


def _frames(failure: Failure) -> list[TracebackFrame]:
    return [frame for frame in frames_shown(failure) if isinstance(frame, TracebackFrame)]


def code_name_of(frame: TracebackFrame, cells: NotebookCells) -> str | None:
    """Return IPython's name of the code of the frame's cell, if the cell has not changed."""
    if not frame.cell or not frame.cell_line:
        return None
    run = cells.runs.get(frame.cell)
    if run is None or run.filename not in linecache.cache:
        return None
    if frame.cell_id and run.cell_id and frame.cell_id != run.cell_id:
        # The same number in another session of the kernel.
        return None
    lines = run.source.replace("\r\n", "\n").split("\n")
    there = lines[frame.cell_line - 1] if frame.cell_line <= len(lines) else ""
    if parse_cell(run.source, run.tags) is None or there.strip() != frame.code.strip():
        return None
    return run.filename


def _frame(code_name: str, line: int, function: str) -> types.TracebackType | None:
    """Return the traceback entry of an exception raised at ``line`` of ``code_name``."""
    line = min(max(line, 1), _MAX_LINE)
    name = one_line(function, 100) or "<module>"
    code = compile("\n" * (line - 1) + "raise error", code_name, "exec")
    namespace: dict[str, Any] = {"error": ProgramError()}
    try:
        exec(code.replace(co_name=name, co_qualname=name), namespace)  # noqa: S102 - generated text
    except ProgramError as raised:
        return raised.__traceback__.tb_next if raised.__traceback__ else None
    return None
