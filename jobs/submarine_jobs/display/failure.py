"""Format the traceback of a failed program, with cells instead of files, as text and HTML."""

from __future__ import annotations

from submarine_jobs.text import escape_html, escape_html_line, one_line, printable
from submarine_runtime.protocol import Failure, TracebackFrame
from submarine_runtime.translation import _

_MAX_FRAMES = 20
_MAX_MESSAGE = 2000


def frames_shown(failure: Failure) -> list[TracebackFrame | int]:
    """Return the frames to show; an integer is the number of omitted frames."""
    frames = failure.frames
    if len(frames) <= _MAX_FRAMES:
        return list(frames)
    half = _MAX_FRAMES // 2
    return [*frames[:half], len(frames) - 2 * half, *frames[-half:]]


def location(frame: TracebackFrame) -> str:
    """Return ``Cell [3] "model.py", line 4, in build`` or ``File "...", line 4, in build``."""
    where = (
        _('Cell {cell} "{file}", line {line}').format(
            cell=frame.cell, file=frame.file, line=frame.cell_line or frame.line
        )
        if frame.cell
        else _('File "{file}", line {line}').format(file=frame.file, line=frame.line)
    )
    if not frame.function:
        return where
    return _("{where}, in {function}").format(where=where, function=frame.function)


def failure_text(failure: Failure) -> str:
    """Return the traceback as Python prints it, with cells instead of files where known."""
    lines = []
    if failure.frames:
        lines.append("Traceback (most recent call last):")
    for frame in frames_shown(failure):
        if isinstance(frame, int):
            lines.append(_("  … {count} more frames …").format(count=frame))
            continue
        lines.append(f"  {one_line(location(frame))}")
        if frame.code.strip():
            lines.append(f"    {one_line(frame.code)}")
    lines.append(_last_line(failure))
    return "\n".join(lines)


def _last_line(failure: Failure) -> str:
    message = printable(failure.message, _MAX_MESSAGE)
    name = one_line(failure.type, 200)
    return f"{name}: {message}" if message else name


def failure_html(failure: Failure) -> str:
    """Return the traceback as escaped HTML for a ``<pre>``, with emphasized frames of cells."""
    lines = []
    for frame in frames_shown(failure):
        if isinstance(frame, int):
            lines.append(_("  … {count} more frames …").format(count=frame))
            continue
        where = escape_html_line(location(frame))
        code = escape_html_line(frame.code)
        if frame.cell:
            where = f"<strong>{where}</strong>"
        lines.append(f"  {where}" + (f"\n    {code}" if code else ""))
    message = escape_html(failure.message, _MAX_MESSAGE)
    name = escape_html_line(failure.type, 200)
    lines.append(f'<strong style="color:#ff8a80">{name}</strong>{": " if message else ""}{message}')
    return "\n".join(lines)
