"""Select the tasks and attempts of a job for a command, and complete their names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from submarine_jobs.commands.grammar import TYPED
from submarine_jobs.errors import UsageError
from submarine_jobs.frontends import Frontend
from submarine_jobs.logs import (
    list_attempts,
    saved_attempts,
    started_attempts,
    unsaved_attempts as unsaved_attempts_,
)
from submarine_jobs.model import MAX_MERGED_TASKS, format_task_ranges, select_tasks
from submarine_runtime.translation import _

#: Attempts without a log that ``logs`` names.
MAX_UNSAVED = 10

if TYPE_CHECKING:
    from submarine_jobs.client import Job
    from submarine_jobs.tracking import IndexEntry, JobStore
    from submarine_runtime.protocol import JobRecord


def chosen_tasks(job: Job, words: Sequence[str], every: bool) -> list[str]:
    """Return the tasks that ``--task`` and ``--all`` select; the default is the chief.

    Raises
    ------
    UsageError
        For a task that the job does not have; the message lists the tasks.
    """
    if every and words:
        raise UsageError(_("--task and --all exclude each other."), _("Give one of them."))
    names = job.task_names
    chosen = names if every else select_tasks(names, words, job.id) if words else [job.chief]
    if len(chosen) > MAX_MERGED_TASKS:
        raise UsageError(
            _("{count} tasks are too many to be shown together.").format(count=len(chosen)),
            _("Choose at most {max_merged_tasks} with --task NAME, which may be repeated.").format(
                max_merged_tasks=MAX_MERGED_TASKS
            ),
        )
    return chosen


def chosen_attempt(
    job: Job, task: str, attempt: str | None, record: JobRecord | None
) -> str | None:
    """Return the attempt to read; None: the only one. ``record`` None: there is only one.

    Raises
    ------
    UsageError
        For an attempt that the task does not have.
    """
    if record is None:
        if attempt not in (None, "e1-a1"):
            raise UsageError(
                _("Job {job} has no attempt {attempt!r}.").format(job=job.id, attempt=attempt),
                _("It has only e1-a1."),
            )
        return None
    found = list_attempts(job, task, record)
    if attempt is None:
        return found[-1] if found else None
    if attempt not in found:
        available = ", ".join(found) or _("none with a log yet")
        if record.state.ended and attempt in started_attempts(task, record):
            raise UsageError(
                not_saved(task, attempt),
                _("There are logs of: {available}.").format(available=available),
            )
        raise UsageError(
            _("{task} has no attempt {attempt!r}.").format(task=task, attempt=attempt[:40]),
            _("It has {available}.").format(available=available),
        )
    return attempt


def not_saved(task: str, attempt: str) -> str:
    """Return the sentence on an attempt without a log."""
    return _(
        "No log of attempt {attempt} of {task} was saved: it printed nothing, or its container "
        "was lost before anything had been shipped."
    ).format(attempt=attempt, task=task)


def unsaved_attempts(job: Job, tasks: Sequence[str], record: JobRecord | None) -> list[str]:
    """Return a sentence for each attempt that ran and has no saved log; ten, then a count.

    Parameters
    ----------
    record
        The job's record; None for a job of one task, whose record is read only if it has no log.
    """
    if record is None:
        if saved_attempts(job, tasks[0]) != set():
            return []
        record = job.record()
    missing = [(task, name) for task in tasks for name in unsaved_attempts_(job, task, record)]
    sentences = [not_saved(task, name) for task, name in missing[:MAX_UNSAVED]]
    if len(missing) > MAX_UNSAVED:
        sentences.append(
            _("No log of {count} more attempts was saved.").format(count=len(missing) - MAX_UNSAVED)
        )
    return sentences


def other_logs(job: Job, task: str, attempt: str | None, *, named: bool) -> list[str]:
    """Return a sentence each on other tasks and earlier attempts, if there are any."""
    sentences = []
    names = job.task_names
    if len(names) > 1 and not named:
        sentences.append(
            _(
                "This is the log of {task}; the job has {task_ranges}. --task NAME shows "
                "another, --all all of them."
            ).format(task=task, task_ranges=format_task_ranges(names))
        )
    if attempt is not None:
        earlier = [name for name in job.attempts(task) if name != attempt]
        if earlier:
            sentences.append(
                _(
                    "This is attempt {attempt} of {task}, which has also {earlier}; --attempt "
                    "NAME shows one."
                ).format(attempt=attempt, task=task, earlier=", ".join(earlier[-8:]))
            )
    return sentences


def complete_tasks(
    ctx: click.Context, _param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete tasks and roles of the typed job, from the index of this machine."""
    frontend = ctx.find_object(Frontend) or Frontend()
    job = ctx.params.get("job") or _typed_job(ctx)
    if not isinstance(job, str):
        return []
    typed = {name: ctx.params.get(name) for name in ("profile", "backend")}
    known = _known(frontend.session(frontend.config(typed)).store, job)
    if known is None or known.record is None:
        return []
    names = [task.task for task in known.record.tasks]
    roles = list(dict.fromkeys(task.role for task in known.record.tasks))
    words = [*names, *(role for role in roles if len(names) > len(roles))]
    helps = {task.task: str(task.state) for task in known.record.tasks}
    return [
        CompletionItem(word, help=helps.get(word))
        for word in words
        if word.startswith(incomplete) and word.isprintable()
    ]


def _typed_job(ctx: click.Context) -> str | None:
    """Return the typed job if click could not parse, because an option has no value yet."""
    return next((word for word in ctx.meta.get(TYPED, ()) if not word.startswith("-")), None)


def _known(store: JobStore, text: str) -> IndexEntry | None:
    if text == "last":
        return next(iter(store.newest(1)), None)
    return store.get(text) or store.named(text) or next(iter(store.beginning_with(text)), None)
