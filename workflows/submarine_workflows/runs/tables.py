"""Text and tables of runs: nodes, result, history, missed runs. Untrusted text is sanitized."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from submarine_jobs.display.columns import Row, html, text
from submarine_jobs.text import duration, escape_html, one_line, printable
from submarine_runtime.translation import _
from submarine_workflows.display import as_svg
from submarine_workflows.runs.missed_runs import MissedRuns
from submarine_workflows.runs.statuses import Status
from submarine_workflows.runs.views import NodeView, RunView

_TAIL = 8 << 10
_LINES = 12
_COLUMNS = ("node", "status", "attempt", "took", "reason")
_HISTORY = ("run", "status", "started", "took", "failed")


def head_of(view: RunView, now: float) -> str:
    """Return one line about the run."""
    took = duration((view.ended or now) - view.started) if view.started else "-"
    word = "for" if view.alive else "after"
    head = f"{view.run}: {view.status} {word} {took}"
    return f"{head}. {one_line(view.reason, 600)}" if view.reason else f"{head}."


def table_of(view: RunView, now: float) -> str:
    """Return the run with one line per node."""
    return f"{head_of(view, now)}\n{text(_COLUMNS, [_row(node, now) for node in view.nodes])}"


def html_of(view: RunView, now: float) -> str:
    """Return the run as HTML for a notebook: the graph, and a table below it."""
    table = html(_COLUMNS, [_row(node, now) for node in view.nodes])
    picture = as_svg(view.workflow, view.states())
    return f"<p>{escape_html(head_of(view, now), 1000)}</p>{picture}{table}"


def _row(node: NodeView, now: float) -> Row:
    # A node that waits in a resumed run may have had an earlier attempt.
    started = node.started if node.status is not Status.READY else None
    took = duration((node.ended or now) - started) if started else "-"
    attempt = str(node.attempt + 1) if started else "-"
    return (node.path, str(node.status), attempt, took, one_line(node.reason, 120))


def log_of(view: RunView, node: NodeView) -> Path | None:
    """Return the log of a node's newest attempt, inside the folder of its run."""
    name = Path(node.log).name
    return view.folder / "logs" / name if name else None


def log_tail(path: Path | None, lines: int = _LINES) -> list[str]:
    """Return the last lines of a log, sanitized."""
    try:
        if path is None:
            return []
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - _TAIL))
            data = file.read(_TAIL)
    except OSError:
        return []
    rows = data.decode("utf-8", "replace").splitlines()
    return [printable(row, 400) for row in rows[-lines:]]


def history_rows(views: Sequence[RunView], now: float) -> list[Row]:
    """Return a row for each run."""
    rows: list[Row] = []
    for view in views:
        failed = [n.path for n in view.nodes if n.status in (Status.FAILED, Status.KILLED)]
        took = duration((view.ended or now) - view.started) if view.started else "-"
        rows.append((view.run, str(view.status), clock(view.started), took, ", ".join(failed[:5])))
    return rows


def history_text(rows: Sequence[Row]) -> str:
    """Return the rows as text."""
    return text(_HISTORY, rows)


def history_html(rows: Sequence[Row]) -> str:
    """Return the rows as a table."""
    return html(_HISTORY, rows)


def clock(moment: float) -> str:
    """Return a timestamp as local time."""
    if not moment:
        return "-"
    return datetime.fromtimestamp(moment).astimezone().strftime("%Y-%m-%d %H:%M:%S %Z")


def missed_runs_sentence(name: str, found: MissedRuns) -> str:
    """Return a sentence on the missed runs, with the newest times; empty if there are none."""
    if not found.times:
        return ""
    count = len(found.times)
    newest = ", ".join(moment.strftime("%Y-%m-%d %H:%M %Z") for moment in found.times[-5:])
    least = _("at least ") if found.more else ""
    which = f"{newest}" if count <= 5 else f"… {newest}"
    runs = _("run was") if count == 1 else _("runs were")
    return _("{name}: {least}{count} scheduled {runs} missed: {which}.").format(
        name=name, least=least, count=count, runs=runs, which=which
    )
