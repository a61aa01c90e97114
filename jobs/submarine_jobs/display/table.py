"""Many jobs as a table: text for terminals, HTML for notebooks."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

from submarine_jobs.display import summary
from submarine_jobs.display.colours import STATE_COLOURS
from submarine_jobs.display.durations import duration
from submarine_jobs.display.tame import tame
from submarine_jobs.display.untrusted import escaped_line, one_line
from submarine_jobs.view import JobView
from submarine_runtime.protocol.record import JobRecord

COLUMNS = ("ID", "NAME", "STATE", "REASON", "SUBMITTED", "TIME", "QUEUE", "USER")
_LIMITS = (80, 24, 11, 18, 23, 12, 20, 16)
#: One more, where any of the jobs comes from a workflow.
_WORKFLOW, _WORKFLOW_LIMIT = "WORKFLOW", 80
_MAX_ROWS = 1000


class Table(NamedTuple):
    """The two forms of a list of jobs."""

    text: str
    html: str


def table(records: Sequence[JobRecord], *, now: float | None = None) -> Table:
    """List ``records`` in the order given, at most 1,000; the overflow is stated."""
    if not records:
        return Table("No jobs.", "<p>No jobs.</p>")
    moment = time.time() if now is None else now
    tamed = [tame(record) for record in records[:_MAX_ROWS]]
    columns: tuple[str, ...] = COLUMNS
    rows = [_row(record, moment) for record in tamed]
    if any(record.workflow for record in tamed):
        columns = (*COLUMNS, _WORKFLOW)
        rows = [(*row, _origin(record)) for row, record in zip(rows, tamed, strict=True)]
    more = len(records) - len(rows)
    note = f"… and {more} more" if more else ""
    return Table(_text(columns, rows, note), _html(columns, records, rows, note))


def _row(record: JobRecord, now: float) -> tuple[str, ...]:
    values = (
        record.job_id,
        record.name,
        f"{record.state.value}?" if record.last_known else record.state.value,
        str(record.reason or ""),
        summary.submitted(record),
        duration(summary.elapsed(JobView(record), now)),
        record.queue or "",
        record.user,
    )
    return tuple(one_line(value, limit) for value, limit in zip(values, _LIMITS, strict=True))


def _origin(record: JobRecord) -> str:
    """``nightly · train``: its run is told by the job itself."""
    words = (record.workflow, record.workflow_node)
    return one_line(" · ".join(word for word in words if word), _WORKFLOW_LIMIT)


def _text(columns: tuple[str, ...], rows: list[tuple[str, ...]], note: str) -> str:
    everything = [columns, *rows]
    widths = [max(len(row[column]) for row in everything) for column in range(len(columns))]
    lines = [
        "  ".join(value.ljust(width) for value, width in zip(row, widths, strict=True)).rstrip()
        for row in everything
    ]
    return "\n".join([*lines, note] if note else lines)


def _html(
    columns: tuple[str, ...],
    records: Sequence[JobRecord],
    rows: list[tuple[str, ...]],
    note: str,
) -> str:
    cell = "text-align:left;padding:2px 12px 2px 0;white-space:nowrap"
    head = "".join(f'<th style="{cell}">{name.capitalize()}</th>' for name in columns)
    body = []
    for record, row in zip(records, rows, strict=False):
        colour = STATE_COLOURS[record.state]
        cells = []
        for name, value in zip(columns, row, strict=True):
            words = escaped_line(value)
            if name == "STATE":
                words = f'<span style="color:{colour}">●</span> {words}'
            cells.append(f'<td style="{cell}">{words}</td>')
        body.append(f"<tr>{''.join(cells)}</tr>")
    after = f"<p>{escaped_line(note)}</p>" if note else ""
    return (
        '<table class="tex2jax_ignore mathjax_ignore"><thead><tr>'
        f"{head}</tr></thead><tbody>{''.join(body)}</tbody></table>{after}"
    )
