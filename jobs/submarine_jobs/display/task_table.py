"""The table of a job's tasks, as text and HTML; many tasks are summarized by role."""

from __future__ import annotations

from collections.abc import Sequence

from submarine_jobs.display import columns, task_rows
from submarine_jobs.display.columns import STATE_COLOURS, Table
from submarine_jobs.display.sanitized_record import sanitize_view
from submarine_jobs.display.summary import now_of
from submarine_jobs.display.task_rows import FEW, RoleSummary, TaskRow
from submarine_jobs.model import JobView
from submarine_jobs.text import escape_html, escape_html_line, one_line, web_link
from submarine_runtime.protocol import JobRecord, TaskRecord
from submarine_runtime.translation import _, gettext_noop

HEADS = (
    gettext_noop("Task"),
    gettext_noop("State"),
    gettext_noop("Node"),
    gettext_noop("Container"),
    gettext_noop("Attempt"),
    gettext_noop("Progress"),
    gettext_noop("CPU"),
    gettext_noop("Memory"),
    gettext_noop("GPUs"),
    gettext_noop("GPU use"),
    gettext_noop("Note"),
)
_LIMITS = (40, 10, 40, 40, 12, 4, 12, 40, 4, 40, 160)
#: Maximum number of rows, and of tasks of a job.
MAX_ROWS = 4096
_CELL = (
    "text-align:left;vertical-align:top;padding:1px 12px 1px 0;border:none;background:none;"
    "white-space:nowrap"
)
_NOTE = (
    "text-align:left;vertical-align:top;padding:0 0 3px 14px;border:none;background:none;"
    "white-space:normal;overflow-wrap:anywhere;max-width:780px"
)
_PLAIN = "background:none;border:none"
_QUIET = "opacity:.72"
_HEAD = f"{_CELL};font-weight:normal;{_QUIET}"
_NOTE_COLUMN = HEADS.index("Note")


def all_tasks(view: JobView, *, now: float | None = None) -> Table:
    """Return a table with one row for each task of a job."""
    record = sanitize_view(view).record
    if not record.tasks:
        words = _("No tasks yet.")
        return Table(words, f"<p>{words}</p>")
    when = now_of(view, now)
    lines = text_lines(record, when, every=True)
    return Table("\n".join(lines), html(record, when, every=True))


def text_lines(record: JobRecord, now: float, *, every: bool = False) -> list[str]:
    """Return the table as lines; with ``every``, tasks are not summarized."""
    tasks = task_rows.ordered(record)
    if every or len(tasks) <= FEW:
        return _text_table(tasks[:MAX_ROWS], now)
    shown = task_rows.notable(record)
    return [
        *(
            f"{one_line(r.role, 40)} ({r.size}): {one_line(r.words)}"
            for r in task_rows.roles(record)
        ),
        *_text_table(shown, now),
        _("({count} of {total} tasks; `show --tasks` has all)").format(
            count=len(shown), total=len(tasks)
        ),
    ]


def _text_table(tasks: Sequence[TaskRecord], now: float) -> list[str]:
    rows = [_row_fields(task_rows.row(task, now)) for task in tasks]
    used = _used(rows)
    heads = tuple(_(HEADS[column]).upper() for column in used)
    shown = [tuple(line[column] for column in used) for line in rows]
    return columns.text(heads, shown).split("\n")


def _row_fields(row: TaskRow) -> tuple[str, ...]:
    progress = "" if row.progress is None else f"{min(max(row.progress, 0.0), 1.0):.0%}"
    values = (*row[:1], row.state.value, *row[2:5], progress, *row[6:])
    return tuple(one_line(value, limit) for value, limit in zip(values, _LIMITS, strict=True))


def _used(rows: Sequence[tuple[str, ...]]) -> list[int]:
    """Return the columns that are not empty."""
    return [column for column in range(len(HEADS)) if any(line[column] for line in rows)]


def html(record: JobRecord, now: float, *, every: bool = False) -> str:
    """Return the table as HTML; with ``every``, tasks are not summarized."""
    tasks = task_rows.ordered(record)
    if every or len(tasks) <= FEW:
        return _html_table(tasks[:MAX_ROWS], now)
    shown = task_rows.notable(record)
    bars = "".join(_role_html(summary) for summary in task_rows.roles(record))
    note = _("{count} of {total} tasks: failed, restarting, waiting, slowest.").format(
        count=len(shown), total=len(tasks)
    )
    has_all = _("{command} has all.").format(command="<code>show --tasks</code>")
    return (
        f'{bars}{_html_table(shown, now)}<div style="font-size:11px;{_QUIET}">{note} '
        f"{has_all}</div>"
    )


def _role_html(summary: RoleSummary) -> str:
    """Return a bar with one segment for each state, and its legend."""
    segments = "".join(
        f'<div style="display:inline-block;height:6px;width:{number / summary.size:.2%};'
        f'background-color:{STATE_COLOURS[state]}"></div>'
        for state, number in summary.states
    )
    return (
        f'<div style="margin:6px 0 2px 0;font-size:12px"><strong>'
        f"{escape_html_line(summary.role, 40)}"
        f"</strong> &times; {summary.size} &nbsp;"
        f'<span style="{_QUIET}">{escape_html_line(summary.words)}</span></div>'
        '<div style="height:6px;line-height:0;font-size:0;white-space:nowrap;overflow:hidden;'
        f'border-radius:3px;margin:0 0 4px 0">{segments}</div>'
    )


def _html_table(tasks: Sequence[TaskRecord], now: float) -> str:
    rows = [task_rows.row(task, now) for task in tasks]
    words = [_row_fields(row) for row in rows]
    used = [column for column in _used(words) if column != _NOTE_COLUMN]
    head = "".join(f'<th style="{_HEAD}">{_(HEADS[column])}</th>' for column in used)
    body = "".join(
        f'<tr style="{_PLAIN}">{_cells(task, row, line, used)}</tr>{_note(line, len(used))}'
        for task, row, line in zip(tasks, rows, words, strict=True)
    )
    style = "border:none;border-collapse:collapse;margin:6px 0 2px 0;font-size:12px"
    return (
        '<div style="overflow-x:auto">'
        f'<table style="{style}"><thead><tr style="{_PLAIN}">{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _cells(task: TaskRecord, row: TaskRow, line: tuple[str, ...], used: Sequence[int]) -> str:
    cells = []
    for column in used:
        shown = escape_html_line(line[column])
        if HEADS[column] == "Task":
            shown = f"<strong>{shown}</strong>"
        elif HEADS[column] == "State":
            shown = f'<span style="color:{STATE_COLOURS[row.state]}">●</span> {shown}'
        elif HEADS[column] == "Progress" and row.progress is not None:
            shown = f"{_bar(row)} {shown}"
        elif HEADS[column] == "Container":
            shown = _container(task, shown)
        elif HEADS[column] == "GPUs":
            shown = _titled(escape_html("\n".join(task.gpus)), shown)
        cells.append(f'<td style="{_CELL}">{shown}</td>')
    return "".join(cells)


def _container(task: TaskRecord, shown: str) -> str:
    """Return the short container name with the full name as tooltip, linked to its log page."""
    whole = _titled(escape_html_line(task.container_id or "", 120), shown)
    if (link := web_link(task.log_url)) is None or not shown:
        return whole
    href = escape_html(link, 2000)
    return f'<a href="{href}" target="_blank" rel="noopener noreferrer">{whole}</a>'


def _titled(title: str, shown: str) -> str:
    """Return ``shown`` with a tooltip; both are escaped."""
    return f'<span title="{title}">{shown}</span>'


def _note(line: tuple[str, ...], width: int) -> str:
    """Return the note as a separate row, so that the table is narrow."""
    if not line[_NOTE_COLUMN]:
        return ""
    words = escape_html_line(line[_NOTE_COLUMN])
    return (
        f'<tr style="{_PLAIN}"><td colspan="{width}" style="{_NOTE};{_QUIET}">↳ {words}</td></tr>'
    )


def _bar(row: TaskRow) -> str:
    done = min(max(row.progress or 0.0, 0.0), 1.0)
    return (
        '<span style="display:inline-block;vertical-align:middle;width:48px;height:5px;'
        'border-radius:3px;overflow:hidden;background-color:rgba(127,127,127,.25)">'
        f'<span style="display:block;width:{done:.0%};height:5px;'
        f'background-color:{STATE_COLOURS[row.state]}"></span></span>'
    )
