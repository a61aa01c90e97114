"""Build the record of a job from its shipped events, for a job that cannot be queried.

Pure functions. ``closing`` reads the directory and determines the end reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from submarine_jobs import model
from submarine_runtime.protocol import Event, JobRecord, Phase, State, TaskRecord, may_follow


def fold(record: JobRecord, events: Iterable[Event]) -> JobRecord:
    """Update ``record`` in place with the events, and return it.

    The state of an event is ignored if it may not follow the current state: events may be late.
    """
    for event in events:
        record.events.append(event)
        if event.state is not None and may_follow(record.state, event.state):
            record.state = event.state
            record.reason = event.reason or record.reason
            record.detail = event.detail or record.detail
        _merge_phases(record, event.data.get("phases"))
        _merge_task(record, event)
    return record


def _merge_phases(record: JobRecord, raw: Any) -> None:
    for item in raw if isinstance(raw, list) else ():
        try:
            phase = model.read_part(Phase, item)
        except ValueError:
            continue
        record.phases = [old for old in record.phases if old.name != phase.name]
        record.phases.append(phase)


def _merge_task(record: JobRecord, event: Event) -> None:
    raw = event.data.get("task")
    if not isinstance(raw, Mapping) or not isinstance(raw.get("task"), str):
        return
    try:
        task = model.read_part(TaskRecord, raw)
    except ValueError:
        return
    record.tasks = [old for old in record.tasks if old.task != task.task]
    record.tasks.append(task)
    record.epoch = max(record.epoch, task.epoch)


def base_record(intent: Mapping[str, Any], job_dir: str) -> JobRecord:
    """Return the record of a job of which only the intent is known."""
    return JobRecord(
        str(intent["job_id"]),
        str(intent["name"]),
        State.SUBMITTING,
        user=str(intent.get("user", "")),
        backend=str(intent.get("backend", "")),
        job_dir=job_dir,
        created=float(intent["created"]),
        workflow=str(intent.get("workflow") or ""),
        workflow_run=str(intent.get("workflow_run") or ""),
        workflow_node=str(intent.get("workflow_node") or ""),
    )
