"""Time zone of a workflow: its own, else that of the machine; and the next runs."""

from __future__ import annotations

import os
from datetime import datetime, tzinfo
from itertools import islice
from pathlib import Path

from submarine_workflows.model.schedule import read_schedule, read_timezone
from submarine_workflows.model.workflow import Workflow

_NEXT = 3


def next_runs(workflow: Workflow) -> list[datetime]:
    """Return the next times of the schedule; empty if there is none."""
    if not workflow.schedule:
        return []
    return list(
        islice(read_schedule(workflow.schedule).after(datetime.now(zone_of(workflow))), _NEXT)
    )


def zone_of(workflow: Workflow) -> tzinfo:
    """Return the workflow's time zone, else the machine's."""
    if workflow.timezone:
        return read_timezone(workflow.timezone)
    return machine_zone()


def machine_zone() -> tzinfo:
    """Return the machine's time zone, with its daylight saving rules if they can be found."""
    for name in (os.environ.get("TZ", ""), _linked()):
        try:
            if name:
                return read_timezone(name.removeprefix(":"))
        except ValueError:
            continue
    found = datetime.now().astimezone().tzinfo
    if found is None:
        raise RuntimeError("the machine has no time zone")
    return found


def _linked() -> str:
    try:
        target = Path("/etc/localtime").resolve()
    except OSError:
        return ""
    return str(target).partition("zoneinfo/")[2]
