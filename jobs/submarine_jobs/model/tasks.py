"""Tasks of a job: their names, the chief, the failed task, and selection by name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

from submarine_jobs.errors import UsageError
from submarine_runtime.protocol import (
    CHIEF_ROLES,
    EndReason,
    JobRecord,
    JobSpec,
    State,
    TaskRecord,
    layout,
)
from submarine_runtime.translation import _

#: The only task of a job of one task.
ONLY_TASK = "worker:0"
#: Maximum number of tasks whose logs are merged.
MAX_MERGED_TASKS = 256


def task_names(spec: JobSpec) -> list[str]:
    """Return the names of all requested tasks in order of role and index."""
    return [f"{role.name}:{index}" for role in spec.roles for index in range(role.instances)]


def chief_of(spec: JobSpec) -> str:
    """Return the chief: the task whose outputs are those of the job."""
    by_name = {role.name for role in spec.roles}
    found = next((name for name in CHIEF_ROLES if name in by_name), None)
    if found is None:
        tracked = (role.name for role in spec.roles if role.kind == "tracked")
        found = next(tracked, spec.roles[0].name)
    return f"{found}:0"


def chief_of_record(record: JobRecord) -> str:
    """Return the chief according to a record, which may not have all tasks yet."""
    tasks = sorted(record.tasks, key=lambda task: task.index)
    for role in CHIEF_ROLES:
        for task in tasks:
            if task.role == role:
                return task.task
    return tasks[0].task if tasks else ONLY_TASK


def failed_task(record: JobRecord) -> TaskRecord | None:
    """Return the task whose failure ended the job: the first to fail by itself; None if none."""
    failed = [
        task
        for task in record.tasks
        if task.state in (State.FAILED, State.LOST) and _is_failure(task.reason)
    ]

    def order(task: TaskRecord) -> tuple[bool, bool, float, str]:
        same = task.reason is not None and task.reason == record.reason
        # A task that fails by itself ends before the tasks that lose their partner.
        return (not same, task.exit_code is None, task.finished or float("inf"), task.task)

    return min(failed, key=order, default=None)


def _is_failure(reason: EndReason | None) -> bool:
    """Whether a task with this end reason failed by itself; without a reason it is a failure."""
    ended_well = (State.SUCCEEDED, State.CANCELLED)
    return reason is None or reason.meaning.state not in ended_well


def most_relevant_task(record: JobRecord) -> str:
    """Return the task whose log is most relevant: the failed task, else the chief."""
    if record.state in (State.FAILED, State.RESTARTING):
        failed = failed_task(record)
        if failed is not None:
            return failed.task
    return chief_of_record(record)


def find_task(record: JobRecord, name: str) -> TaskRecord | None:
    """Return the record of one task; None if there is none."""
    return next((task for task in record.tasks if task.task == name), None)


def select_tasks(names: Sequence[str], words: Iterable[str], job_id: str) -> list[str]:
    """Return the tasks that match names such as ``worker:1`` or roles, in order, each once.

    Raises
    ------
    UsageError
        If no task matches; the message lists the tasks of the job.
    """
    chosen: list[str] = []
    for word in words:
        found = [name for name in names if name == word or name.partition(":")[0] == word]
        if not found:
            near = difflib.get_close_matches(word, names, 1)
            hint = _("Did you mean {near}? ").format(near=near[0]) if near else ""
            raise UsageError(
                _("Job {job} has no task {word!r}.").format(job=job_id, word=word[:60]),
                _("{hint}It has {tasks}.").format(hint=hint, tasks=format_task_ranges(names)),
            )
        chosen += [name for name in found if name not in chosen]
    return chosen


def format_task_ranges(names: Sequence[str]) -> str:
    """Return task names as ranges: ``chief:0, worker:0 to worker:3, ps:0``."""
    roles: dict[str, list[int]] = {}
    for name in names:
        role, index = layout.split_task(name)
        roles.setdefault(role, []).append(index)
    words = []
    for role, found in roles.items():
        indices = sorted(found)
        if len(indices) > 2 and indices[-1] - indices[0] == len(indices) - 1:
            words.append(
                _("{role}:{first} to {role}:{last}").format(
                    role=role, first=indices[0], last=indices[-1]
                )
            )
        else:
            words += [f"{role}:{index}" for index in indices[:20]]
            words += ["..."] if len(indices) > 20 else []
    return ", ".join(words) or _("no task yet")
