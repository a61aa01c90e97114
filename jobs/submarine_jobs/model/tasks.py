"""Which tasks a job has, which of them speaks for it, and which one is meant by a word.

Pure functions of spec and record; asks nobody.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

from submarine_jobs.errors import UsageError
from submarine_jobs.model.spec import JobSpec
from submarine_runtime.protocol import layout
from submarine_runtime.protocol.link import CHIEF_ROLES
from submarine_runtime.protocol.reasons import EndReason
from submarine_runtime.protocol.record import JobRecord, TaskRecord
from submarine_runtime.protocol.states import State

#: The only task of a job of one task.
ONLY_TASK = "worker:0"
#: Most tasks whose logs are shown together.
MAX_TOGETHER = 256
#: A task that ended so was ended by somebody else, or with the others.
_NOT_ITS_FAULT = frozenset(
    {
        EndReason.CANCELLED,
        EndReason.KILLED_ON_CLUSTER,
        EndReason.LEASE_EXPIRED,
        EndReason.SUCCEEDED,
    }
)


def names_of(spec: JobSpec) -> list[str]:
    """All tasks that were asked for, in order of role and index."""
    return [f"{role.name}:{index}" for role in spec.roles for index in range(role.instances)]


def chief_of(spec: JobSpec) -> str:
    """The task whose outputs are the job's."""
    by_name = {role.name for role in spec.roles}
    found = next((name for name in CHIEF_ROLES if name in by_name), None)
    if found is None:
        tracked = (role.name for role in spec.roles if role.kind == "tracked")
        found = next(tracked, spec.roles[0].name)
    return f"{found}:0"


def chief_in(record: JobRecord) -> str:
    """The same as far as a record tells."""
    tasks = sorted(record.tasks, key=lambda task: task.index)
    for role in CHIEF_ROLES:
        for task in tasks:
            if task.role == role:
                return task.task
    return tasks[0].task if tasks else ONLY_TASK


def failed_task(record: JobRecord) -> TaskRecord | None:
    """The task whose failure ended the job: the first that failed of its own; None without one."""
    failed = [
        task
        for task in record.tasks
        if task.state in (State.FAILED, State.LOST) and task.reason not in _NOT_ITS_FAULT
    ]

    def likely(task: TaskRecord) -> tuple[bool, bool, float, str]:
        same = task.reason is not None and task.reason == record.reason
        # What failed on its own failed before those that lost their partner through it.
        return (not same, task.exit_code is None, task.finished or float("inf"), task.task)

    return min(failed, key=likely, default=None)


def telling_task(record: JobRecord) -> str:
    """The task whose log tells most: the one that failed, else the chief."""
    if record.state in (State.FAILED, State.RESTARTING):
        failed = failed_task(record)
        if failed is not None:
            return failed.task
    return chief_in(record)


def task_of(record: JobRecord, name: str) -> TaskRecord | None:
    """What the record says of one task."""
    return next((task for task in record.tasks if task.task == name), None)


def choose(names: Sequence[str], words: Iterable[str], job_id: str) -> list[str]:
    """The tasks that are meant by ``worker:1`` or by a role's name, in order, each once.

    Raises
    ------
    UsageError
        If there is none of that name; the message has the tasks there are.
    """
    chosen: list[str] = []
    for word in words:
        found = [name for name in names if name == word or name.partition(":")[0] == word]
        if not found:
            near = difflib.get_close_matches(word, names, 1)
            hint = f"Did you mean {near[0]}? " if near else ""
            raise UsageError(
                f"Job {job_id} has no task {word[:60]!r}.", f"{hint}It has {ranges(names)}."
            )
        chosen += [name for name in found if name not in chosen]
    return chosen


def ranges(names: Sequence[str]) -> str:
    """``chief:0, worker:0 to worker:3, ps:0``."""
    roles: dict[str, list[int]] = {}
    for name in names:
        role, index = layout.split_task(name)
        roles.setdefault(role, []).append(index)
    words = []
    for role, found in roles.items():
        indices = sorted(found)
        if len(indices) > 2 and indices[-1] - indices[0] == len(indices) - 1:
            words.append(f"{role}:{indices[0]} to {role}:{indices[-1]}")
        else:
            words += [f"{role}:{index}" for index in indices[:20]]
            words += ["..."] if len(indices) > 20 else []
    return ", ".join(words) or "no task yet"
