"""A run is asked to end, from wherever: a file in its folder, which its runner looks for."""

from __future__ import annotations

import time

from submarine_jobs.errors import UsageError
from submarine_jobs.frontends import JOB_FAILED, Frontend, Outcome
from submarine_workflows.local import GRACE
from submarine_workflows.runs import RunFolder, head_of, is_held, view_of

#: Seconds that are waited for its end.
PATIENCE = GRACE + 15.0


def cancel_run(run: RunFolder, frontend: Frontend) -> Outcome:
    """Ask for the end of a run and wait for it."""
    view = view_of(run)
    if not view.alive:
        text = f"{run.run} has ended already: {view.status}."
        if is_held(run.keeper_lock):
            text += " What it had started is just being ended."
        return Outcome(text, value=view.to_json())
    try:
        run.cancel.touch(mode=0o600)
    except OSError as exc:
        raise UsageError(f"{run.path} cannot be written: {exc.strerror}.") from None
    frontend.say(f"Ending {run.run} …")
    deadline = time.monotonic() + PATIENCE
    while run.alive and time.monotonic() < deadline:
        time.sleep(0.2)
    view = view_of(run)
    if view.alive:
        text = f"{run.run} has been told to end and is still {view.status}."
        return Outcome(text, value=view.to_json(), exit_code=JOB_FAILED)
    return Outcome(head_of(view, time.time()), value=view.to_json())
