"""List the attempts of a task that have, may have, or should have a log."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from submarine_jobs.errors import ClusterError
from submarine_jobs.logs.shipped_log import shipped_attempts
from submarine_jobs.model import find_task
from submarine_runtime.protocol import JobRecord, attempt_order, layout, parse_log_key

if TYPE_CHECKING:
    from submarine_jobs.access import JobHandle


def list_attempts(job: JobHandle, task: str, record: JobRecord) -> list[str]:
    """Return the attempts of a task that have or may have a log, oldest first."""
    found = {key.attempt for key in map(parse_log_key, record.logs) if key and key.task == task}
    with contextlib.suppress(ClusterError):
        found.update(shipped_attempts(job.directory, task))
    now = find_task(record, task)
    if now is not None and now.started is not None:
        found.add(layout.attempt_name(now.epoch, now.attempt))
    return sorted(found, key=attempt_order)


def started_attempts(task: str, record: JobRecord) -> set[str]:
    """Return the attempts of a task whose program was started, according to the events."""
    found: set[str] = set()
    for event in record.events:
        reported = event.data.get("task")
        if event.kind == "task" and isinstance(reported, dict) and reported.get("task") == task:
            found |= _named(reported.get("epoch"), reported.get("attempt"))
    return found


def unsaved_attempts(job: JobHandle, task: str, record: JobRecord) -> list[str]:
    """Return the attempts of a task that ran and have no saved log, oldest first.

    Returns nothing for a job that has not ended. A log of length 0 counts as saved.
    """
    ran: set[str] = set()
    for reported in (event.data.get("task") for event in record.events):
        if isinstance(reported, dict) and reported.get("task") == task and reported.get("started"):
            ran |= _named(reported.get("epoch"), reported.get("attempt"))
    if len(record.tasks) == 1 and record.tasks[0].started is not None:
        ran.add(layout.FIRST_ATTEMPT)  # a single task has no events of kind task
    saved = {key.attempt for key in map(parse_log_key, record.logs) if key and key.task == task}
    if not record.state.ended or ran <= saved:
        return []
    shipped = saved_attempts(job, task)
    return [] if shipped is None else sorted(ran - saved - shipped, key=attempt_order)


def saved_attempts(job: JobHandle, task: str) -> set[str] | None:
    """Return the attempts of a task that have shipped a log; None if the storage fails."""
    try:
        return set(shipped_attempts(job.directory, task))
    except ClusterError:
        return None


def _named(epoch: object, attempt: object) -> set[str]:
    if isinstance(epoch, int) and isinstance(attempt, int):
        return {layout.attempt_name(epoch, attempt)}
    return set()
