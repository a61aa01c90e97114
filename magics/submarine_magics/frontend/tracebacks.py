"""A failed job raised as a normal IPython traceback of the cells that it was made from.

The program failed in another process, so there are no frames: they are built from the record.
Each is the frame of a tiny code object that carries the name IPython gave the cell's code, the line
and the function, so that IPython quotes the cell as ever. Only cells that ran in this kernel and
say the same as the bundle are quoted; all other frames are named, as the record has them.
"""

from __future__ import annotations

import linecache
import types
from typing import TYPE_CHECKING, Any

from submarine_jobs.client import ending_words
from submarine_jobs.display import failure_text, frames_shown, tame
from submarine_jobs.errors import JobFailedError
from submarine_jobs.program import parse_cell
from submarine_jobs.text import one_line, printable
from submarine_magics.frontend.refusal import sentence_lines
from submarine_runtime.protocol.failure import Failure, TracebackFrame

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from submarine_jobs.client import Job
    from submarine_magics.cells import NotebookCells

_MAX_LINE = 100_000


class ProgramError(Exception):
    """Stands for the exception that ended the program; it shows the program's own type."""


def job_failed(job: Job, shell: InteractiveShell, cells: NotebookCells) -> JobFailedError:
    """The error to raise for a job that was waited for and did not succeed."""
    record = tame(job.record())
    error = JobFailedError(ending_words(record))
    error.job = job
    error.__dict__["_render_traceback_"] = lambda: _lines(error, record.failure, shell, cells)
    return error


def _lines(
    error: JobFailedError,
    failure: Failure | None,
    shell: InteractiveShell,
    cells: NotebookCells,
) -> list[str]:
    """What IPython prints."""
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
    """Frames for ``failure``; None where none of them lies in an unchanged cell of this kernel."""
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
    """IPython's name of the code of the cell that ``frame`` lies in, if it is still what it was."""
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
    """The traceback entry of an exception raised at ``line`` of ``code_name``."""
    line = min(max(line, 1), _MAX_LINE)
    name = one_line(function, 100) or "<module>"
    code = compile("\n" * (line - 1) + "raise error", code_name, "exec")
    namespace: dict[str, Any] = {"error": ProgramError()}
    try:
        exec(code.replace(co_name=name, co_qualname=name), namespace)  # noqa: S102 - our own text
    except ProgramError as raised:
        return raised.__traceback__.tb_next if raised.__traceback__ else None
    return None
