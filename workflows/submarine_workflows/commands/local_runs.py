"""Implementation of ``submarine workflow cancel`` and ``history`` for runs on this machine."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

from submarine_jobs.errors import UsageError
from submarine_jobs.frontends import JOB_FAILED, Frontend, Outcome
from submarine_runtime.translation import _
from submarine_workflows.local import GRACE
from submarine_workflows.model import zone_of
from submarine_workflows.runs import (
    MissedRuns,
    RunFolder,
    RunNotFoundError,
    Runs,
    RunView,
    find_missed_runs,
    head_of,
    history_html,
    history_rows,
    history_text,
    is_held,
    missed_runs_sentence,
    scheduled_starts,
    view_of,
)

#: Seconds to wait for the end.
PATIENCE = GRACE + 15.0


def cancel_run(run: RunFolder, frontend: Frontend) -> Outcome:
    """Request the end of a run and wait for it."""
    view = view_of(run)
    if not view.alive:
        text = _("{run} has already ended: {status}.").format(run=run.run, status=view.status)
        if is_held(run.guard_lock):
            text += _(" Its remaining processes are being stopped.")
        return Outcome(text, value=view.to_json())
    try:
        run.cancel.touch(mode=0o600)
    except OSError as exc:
        raise UsageError(
            _("{path} cannot be written: {strerror}.").format(path=run.path, strerror=exc.strerror)
        ) from None
    frontend.say(_("Stopping {run} …").format(run=run.run))
    deadline = time.monotonic() + PATIENCE
    while run.alive and time.monotonic() < deadline:
        time.sleep(0.2)
    view = view_of(run)
    if view.alive:
        text = _("{run} has received the request to end and is still {status}.").format(
            run=run.run, status=view.status
        )
        return Outcome(text, value=view.to_json(), exit_code=JOB_FAILED)
    return Outcome(head_of(view, time.time()), value=view.to_json())


def history_of(runs: Runs, name: str | None, limit: int, now: float) -> Outcome:
    """Return the newest runs of a workflow, or of all workflows, and the missed runs.

    Parameters
    ----------
    name
        Name of the workflow, or id of one of its runs; None: all workflows.
    limit
        Maximum number of runs.
    now
        Current time in seconds since 1970.
    """
    found = runs.of(name) if name else runs.all()
    if name and not found:
        found = runs.of(view_of(runs.find(name)).workflow.name)
    views: list[RunView] = []
    for run in found[:limit]:
        with suppress(UsageError):
            views.append(view_of(run))
    absent = {key: what for key, what in _missed_runs(runs, views, now).items() if what.times}
    value: dict[str, Any] = {
        "runs": [view.to_json() for view in views],
        "missed": {key: [m.isoformat() for m in what.times] for key, what in absent.items()},
    }
    if not found:
        return Outcome(_("No workflow has been run here."), value=value)
    rows = history_rows(views, now)
    sentences = [missed_runs_sentence(key, what) for key, what in absent.items()]
    return Outcome(
        "\n".join([history_text(rows), *sentences]), html=history_html(rows), value=value
    )


def _missed_runs(runs: Runs, views: list[RunView], now: float) -> dict[str, MissedRuns]:
    """Return missed runs by workflow, according to the schedule of its newest run."""
    found: dict[str, MissedRuns] = {}
    for view in views:
        workflow = view.workflow
        if workflow.name not in found:
            with suppress(ValueError, RunNotFoundError):
                starts = scheduled_starts(runs.of(workflow.name))
                found[workflow.name] = find_missed_runs(
                    workflow.schedule, zone_of(workflow), starts, now
                )
    return found
