"""Hints on the resources of the next run of a distributed job: memory by role, GPUs by task.

Memory is requested by role, so the task with the highest use decides.
"""

from __future__ import annotations

from typing import Any, Mapping, Sequence

from submarine_runtime.protocol import JobRecord, State, TaskRecord
from submarine_runtime.record import MIN_SECONDS, resource_hints
from submarine_runtime.translation import _

#: Sentences in one record.
MAX_HINTS = 10


def job_hints(record: JobRecord, reported: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the sentences for a job that has ended.

    Parameters
    ----------
    reported
        Task -> hints of its agent; those on memory are ignored.
    """
    requested = record.resources.get("requested")
    roles: dict[str, list[TaskRecord]] = {}
    for task in record.tasks:
        roles.setdefault(task.role, []).append(task)
    found = []
    for role, tasks in roles.items():
        memory = _memory(requested.get(role) if isinstance(requested, Mapping) else None)
        found += [f"{role}: {sentence}" for sentence in _of_role(memory, tasks, record.state)]
    devices = [
        f"{task}: {sentence}"
        for task, sentences in reported.items()
        for sentence in sentences
        if not sentence.startswith("Memory:")
    ]
    found += devices
    if len(found) > MAX_HINTS:
        found[MAX_HINTS - 1 :] = [
            _("And {count} more like these.").format(count=len(found) - MAX_HINTS + 1)
        ]
    return found


def _of_role(memory: float | None, tasks: Sequence[TaskRecord], state: State) -> list[str]:
    peaks = [task.memory_peak for task in tasks if task.memory_peak]
    if len(peaks) < len(tasks):
        return []  # The use of one task is unknown.
    ran = min(_seconds(task) for task in tasks)
    if ran < MIN_SECONDS:
        return []
    return resource_hints(
        requested=memory, peak=max(peaks), seconds=ran, succeeded=state is State.SUCCEEDED
    )


def _seconds(task: TaskRecord) -> float:
    if task.started is None or task.finished is None:
        return 0.0
    return task.finished - task.started


def _memory(raw: Any) -> float | None:
    value = raw.get("memory") if isinstance(raw, Mapping) else None
    return float(value) if isinstance(value, (int, float)) else None
