"""Rows of a job's tasks, a summary for each role, and the selection of notable tasks.

Returns raw strings, which callers must sanitize; ``task_table`` formats them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from submarine_jobs.model import chief_of_record
from submarine_jobs.text import memory
from submarine_runtime.protocol import JobRecord, State, TaskRecord
from submarine_runtime.protocol.layout import attempt_name
from submarine_runtime.translation import _, ngettext

#: Maximum number of tasks that are all shown; of more, a summary and the notable ones.
FEW = 16
MAX_NOTABLE = 10
_FAILED_STATES = (State.FAILED, State.LOST)
_CONTAINER = re.compile(r"^container_(?:e\d+_)?\d+_\d+_\d+_(\d+)\Z")
#: Minimum age of a task in seconds for a meaningful CPU use.
_SECONDS = 2.0


class TaskRow(NamedTuple):
    """The row of a task; fields without a value are empty."""

    task: str
    state: State
    node: str
    container: str
    attempt: str
    progress: float | None
    cpu: str
    memory: str
    gpus: str
    gpu_use: str
    note: str


def many(record: JobRecord) -> bool:
    """Return whether to show a table: several tasks, or a task that was restarted."""
    tasks = record.tasks
    return len(tasks) > 1 or record.epoch > 1 or any(t.restarts or t.attempt > 1 for t in tasks)


def ordered(record: JobRecord) -> list[TaskRecord]:
    """Return the tasks by role, the chief's role first, and by index."""
    chief = chief_of_record(record)
    roles = list(dict.fromkeys(task.role for task in record.tasks))
    roles.sort(key=lambda role: role != chief.partition(":")[0])
    order = {role: number for number, role in enumerate(roles)}
    return sorted(record.tasks, key=lambda task: (order[task.role], task.index))


def row(task: TaskRecord, now: float) -> TaskRow:
    """Return the row of a task."""
    return TaskRow(
        task.task,
        task.state,
        task.host or "",
        short_container(task.container_id or ""),
        attempt_name(task.epoch, task.attempt) if task.started is not None else "",
        None if task.state.ended else task.progress,
        _cpu(task, now),
        _memory(task),
        str(len(task.gpus)) if task.gpus else "",
        _gpu_use(task),
        _note(task),
    )


def short_container(name: str) -> str:
    """Return ``000003`` for ``container_1732_0001_01_000003``; other names are unchanged."""
    match = _CONTAINER.match(name)
    return match.group(1) if match else name


def _cpu(task: TaskRecord, now: float) -> str:
    if task.cpu_seconds is None or task.started is None:
        return ""
    took = (task.finished or now) - task.started
    if took < _SECONDS:
        return ""
    cores = task.cpu_seconds / took
    if cores < 0.005:
        return _("<0.01 cores")
    return (
        _("{cores:.1f} cores").format(cores=cores)
        if cores >= 0.095
        else _("{cores:.2f} cores").format(cores=cores)
    )


def _memory(task: TaskRecord) -> str:
    now = "" if task.memory_now is None or task.state.ended else memory(task.memory_now)
    peak = (
        "" if not task.memory_peak else _("peak {memory}").format(memory=memory(task.memory_peak))
    )
    return ", ".join(part for part in (now, peak) if part)


def _gpu_use(task: TaskRecord) -> str:
    use = []
    if task.gpu_percent is not None:
        use.append(f"{task.gpu_percent:.0f} %")
    if task.gpu_memory is not None:
        use.append(memory(task.gpu_memory))
    return ", ".join(use)


def _note(task: TaskRecord) -> str:
    words = []
    if task.restarts:
        words.append(_("started again {times}").format(times=times(task.restarts)))
    words += _ending(task) if task.state.ended else []
    if not task.state.ended and task.state is not State.RUNNING and task.detail:
        words.append(task.detail)
    return "; ".join(words)


def _ending(task: TaskRecord) -> list[str]:
    if task.state is State.CANCELLED:
        # The signal of a task that was cancelled with the others is not shown.
        return [task.detail] if task.detail else []
    words = []
    detail = task.detail or str(task.reason or "").replace("_", " ")
    if task.state is State.SUCCEEDED:
        detail = ""
    if task.signal and "signal" not in detail.lower():
        words.append(_("signal {signal}").format(signal=task.signal))
    elif task.exit_code and "exit code" not in detail.lower():
        words.append(_("exit code {exit_code}").format(exit_code=task.exit_code))
    return [*words, detail] if detail else words


def times(number: int) -> str:
    """Return ``once``, ``twice``, ``3 times``."""
    known = {1: _("once"), 2: _("twice")}
    return known.get(number) or _("{number} times").format(number=number)


class RoleSummary(NamedTuple):
    """All tasks of one role."""

    role: str
    size: int
    states: list[tuple[State, int]]
    words: str


def roles(record: JobRecord) -> list[RoleSummary]:
    """Return one summary for each role, in the order of ``ordered``."""
    found: dict[str, list[TaskRecord]] = {}
    for task in ordered(record):
        found.setdefault(task.role, []).append(task)
    return [_role(role, tasks) for role, tasks in found.items()]


def _role(role: str, tasks: Sequence[TaskRecord]) -> RoleSummary:
    counts = Counter(task.state for task in tasks)
    states = [(state, counts[state]) for state in State if counts[state]]
    words = [", ".join(f"{number} {state.value}" for state, number in states)]
    going = [t.progress for t in tasks if t.progress is not None and not t.state.ended]
    if going:
        low, high = min(going), max(going)
        words.append(
            _("progress {low:.0%}").format(low=low)
            + (_(" to {high:.0%}").format(high=high) if high - low >= 0.01 else "")
        )
    largest = max(tasks, key=lambda task: task.memory_peak or 0.0)
    if largest.memory_peak:
        words.append(
            _("memory peak {memory} ({task})").format(
                memory=memory(largest.memory_peak), task=largest.task
            )
        )
    busy = [t.gpu_percent for t in tasks if t.gpu_percent is not None and not t.state.ended]
    if busy:
        words.append(_("GPU {low:.0f} to {high:.0f} %").format(low=min(busy), high=max(busy)))
    nodes = {task.host for task in tasks if task.host}
    if nodes:
        words.append(ngettext("{count} node", "{count} nodes", len(nodes)).format(count=len(nodes)))
    if restarts := sum(task.restarts for task in tasks):
        words.append(
            ngettext("{count} restart", "{count} restarts", restarts).format(count=restarts)
        )
    return RoleSummary(role, len(tasks), states, "; ".join(words))


def notable(record: JobRecord, limit: int = MAX_NOTABLE) -> list[TaskRecord]:
    """Return the notable tasks: failed, restarting, waiting, slowest, and the chief."""
    tasks = ordered(record)
    chief = chief_of_record(record)
    running = [t for t in tasks if not t.state.ended and t.progress is not None]
    slowest = sorted(running, key=lambda task: task.progress or 0.0)[:3]
    spread = len({task.progress for task in running}) > 1
    usual = Counter(task.state for task in tasks).most_common(1)[0][0] if tasks else None
    groups = [
        [t for t in tasks if t.state in _FAILED_STATES],
        [t for t in tasks if t.state is State.RESTARTING],
        [t for t in tasks if t.task == chief],
        [t for t in tasks if t.state is not usual and not t.state.ended],
        slowest if spread else [],
        [t for t in tasks if t.restarts],
    ]
    chosen: dict[str, TaskRecord] = {}
    for task in (task for group in groups for task in group):
        if len(chosen) < limit:
            chosen.setdefault(task.task, task)
    return list(chosen.values())
