"""What the owner of a distributed job could do better next time: memory by role, GPUs by task.

Memory is asked for by role, so only what the hungriest task of a role used counts. Measures
nothing.
"""

from __future__ import annotations

from typing import Any, Mapping, Sequence

from submarine_runtime.protocol.record import JobRecord, TaskRecord
from submarine_runtime.protocol.states import State
from submarine_runtime.record import TELLING, hints

#: Sentences of one record; a job of a thousand idle GPUs is idle in few words.
MAX_HINTS = 10


def advice(record: JobRecord, told: Mapping[str, Sequence[str]]) -> list[str]:
    """The sentences for a job that has ended.

    Parameters
    ----------
    told
        Task -> what its agent said of its own program; only what it says of devices is taken.
    """
    requested = record.resources.get("requested")
    roles: dict[str, list[TaskRecord]] = {}
    for task in record.tasks:
        roles.setdefault(task.role, []).append(task)
    found = []
    for role, tasks in roles.items():
        asked = _memory(requested.get(role) if isinstance(requested, Mapping) else None)
        found += [f"{role}: {sentence}" for sentence in _of_role(asked, tasks, record.state)]
    devices = [
        f"{task}: {sentence}"
        for task, sentences in told.items()
        for sentence in sentences
        if not sentence.startswith("Memory:")
    ]
    found += devices
    if len(found) > MAX_HINTS:
        found[MAX_HINTS - 1 :] = [f"And {len(found) - MAX_HINTS + 1} more like these."]
    return found


def _of_role(asked: float | None, tasks: Sequence[TaskRecord], state: State) -> list[str]:
    peaks = [task.memory_peak for task in tasks if task.memory_peak]
    if len(peaks) < len(tasks):
        return []  # of one of them nobody knows what it needed
    ran = min(_seconds(task) for task in tasks)
    if ran < TELLING:
        return []
    return hints(asked=asked, peak=max(peaks), seconds=ran, succeeded=state is State.SUCCEEDED)


def _seconds(task: TaskRecord) -> float:
    if task.started is None or task.finished is None:
        return 0.0
    return task.finished - task.started


def _memory(raw: Any) -> float | None:
    value = raw.get("memory") if isinstance(raw, Mapping) else None
    return float(value) if isinstance(value, (int, float)) else None
