"""``submarine workflow history``: past runs and missed runs."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from submarine_jobs.errors import UsageError
from submarine_jobs.frontends import Outcome
from submarine_workflows.local import scheduled_starts
from submarine_workflows.model import zone_of
from submarine_workflows.runs import (
    Missed,
    RunNotFoundError,
    Runs,
    RunView,
    history_html,
    history_rows,
    history_text,
    missed,
    missed_sentence,
    view_of,
)


def history_of(runs: Runs, name: str | None, limit: int, now: float) -> Outcome:
    """Return the newest runs of a workflow, or of all workflows, and the missed runs."""
    found = runs.of(name) if name else runs.all()
    if name and not found:
        found = runs.of(view_of(runs.find(name)).workflow.name)
    views: list[RunView] = []
    for run in found[:limit]:
        with suppress(UsageError):
            views.append(view_of(run))
    absent = {key: what for key, what in _missed(runs, views, now).items() if what.times}
    value: dict[str, Any] = {
        "runs": [view.to_json() for view in views],
        "missed": {key: [m.isoformat() for m in what.times] for key, what in absent.items()},
    }
    if not found:
        return Outcome("No workflow has been run here.", value=value)
    rows = history_rows(views, now)
    told = [missed_sentence(key, what) for key, what in absent.items()]
    return Outcome("\n".join([history_text(rows), *told]), html=history_html(rows), value=value)


def _missed(runs: Runs, views: list[RunView], now: float) -> dict[str, Missed]:
    """Return missed runs by workflow, according to the schedule of its newest run."""
    found: dict[str, Missed] = {}
    for view in views:
        workflow = view.workflow
        if workflow.name not in found:
            with suppress(ValueError, RunNotFoundError):
                starts = scheduled_starts(runs.of(workflow.name))
                found[workflow.name] = missed(workflow.schedule, zone_of(workflow), starts, now)
    return found
