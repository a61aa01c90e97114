"""``submarine workflow cancel``: request the end of a run by a file in its folder."""

from __future__ import annotations

import time

from submarine_jobs.errors import UsageError
from submarine_jobs.frontends import JOB_FAILED, Frontend, Outcome
from submarine_workflows.local import GRACE
from submarine_workflows.runs import RunFolder, head_of, is_held, view_of

#: Seconds to wait for the end.
PATIENCE = GRACE + 15.0


def cancel_run(run: RunFolder, frontend: Frontend) -> Outcome:
    """Request the end of a run and wait for it."""
    view = view_of(run)
    if not view.alive:
        text = f"{run.run} has already ended: {view.status}."
        if is_held(run.keeper_lock):
            text += " Its remaining processes are being stopped."
        return Outcome(text, value=view.to_json())
    try:
        run.cancel.touch(mode=0o600)
    except OSError as exc:
        raise UsageError(f"{run.path} cannot be written: {exc.strerror}.") from None
    frontend.say(f"Stopping {run.run} …")
    deadline = time.monotonic() + PATIENCE
    while run.alive and time.monotonic() < deadline:
        time.sleep(0.2)
    view = view_of(run)
    if view.alive:
        text = f"{run.run} has received the request to end and is still {view.status}."
        return Outcome(text, value=view.to_json(), exit_code=JOB_FAILED)
    return Outcome(head_of(view, time.time()), value=view.to_json())
