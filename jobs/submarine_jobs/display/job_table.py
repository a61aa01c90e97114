"""The table of jobs: text for terminals, HTML for notebooks."""

from __future__ import annotations

import time
from collections.abc import Sequence

from submarine_jobs.display import columns, summary
from submarine_jobs.display.columns import STATE_COLOURS, Row, Table
from submarine_jobs.display.sanitized_record import sanitize
from submarine_jobs.model import JobView
from submarine_jobs.text import one_line
from submarine_runtime.protocol import JobRecord
from submarine_runtime.translation import _, gettext_noop

COLUMNS = (
    gettext_noop("ID"),
    gettext_noop("NAME"),
    gettext_noop("STATE"),
    gettext_noop("REASON"),
    gettext_noop("SUBMITTED"),
    gettext_noop("TIME"),
    gettext_noop("QUEUE"),
    gettext_noop("USER"),
)
_LIMITS = (80, 24, 11, 18, 23, 12, 20, 16)
#: Added if one of the jobs comes from a workflow.
_WORKFLOW, _WORKFLOW_LIMIT = gettext_noop("WORKFLOW"), 80
_MAX_ROWS = 1000


def table(records: Sequence[JobRecord], *, now: float | None = None) -> Table:
    """List ``records`` in the given order, at most 1,000, with the number of the others."""
    if not records:
        words = _("No jobs.")
        return Table(words, f"<p>{words}</p>")
    moment = time.time() if now is None else now
    sanitized = [sanitize(record) for record in records[:_MAX_ROWS]]
    heads: Row = COLUMNS
    rows = [_row(record, moment) for record in sanitized]
    if any(record.workflow for record in sanitized):
        heads = (*COLUMNS, _WORKFLOW)
        rows = [(*row, _origin(record)) for row, record in zip(rows, sanitized, strict=True)]
    more = len(records) - len(rows)
    note = _("… and {more} more").format(more=more) if more else ""
    dots = {"STATE": [STATE_COLOURS[record.state] for record in sanitized]}
    return Table(columns.text(heads, rows, note), columns.html(heads, rows, note, dots=dots))


def _row(record: JobRecord, now: float) -> Row:
    values = (
        record.job_id,
        record.name,
        f"{record.state.value}?" if record.last_known else record.state.value,
        str(record.reason or ""),
        summary.submitted(record),
        summary.format_elapsed(JobView(record), now) or "-",
        record.queue or "",
        record.user,
    )
    return tuple(one_line(value, limit) for value, limit in zip(values, _LIMITS, strict=True))


def _origin(record: JobRecord) -> str:
    """Return workflow and node: ``nightly · train``."""
    words = (record.workflow, record.workflow_node)
    return one_line(" · ".join(word for word in words if word), _WORKFLOW_LIMIT)
