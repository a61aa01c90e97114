"""``stack``: show the stacks of a running job, equal ones together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import click

from submarine_jobs.commands.grammar import (
    Verb,
    backend_option,
    job_argument,
    option,
    profile_option,
    show_foreign_owner,
)
from submarine_jobs.commands.log_output import complete_tasks
from submarine_jobs.errors import UsageError
from submarine_jobs.frontends import Frontend, Outcome
from submarine_jobs.model import select_tasks
from submarine_jobs.text import one_line
from submarine_runtime.translation import _, ngettext


@click.command("stack", cls=Verb, example=("stack last", "stack last --task worker:1"))
@job_argument
@option(
    "--task",
    metavar="NAME",
    heading="Tasks",
    shell_complete=complete_tasks,
    help="Only this task, such as worker:1 [all].",
)
@profile_option
@backend_option
@click.pass_obj
def stack(
    frontend: Frontend,
    /,
    job: str,
    task: str | None,
    profile: str | None,
    backend: str | None,
) -> Outcome:
    """Show where each rank of a running job is: its stacks, equal ones together.

    A rank that the others wait for is named. The program is not stopped: Python writes the stacks.
    """
    found = frontend.session(frontend.config({"profile": profile, "backend": backend})).job(job)
    show_foreign_owner(found, frontend)
    if task is not None:
        selected = select_tasks(found.task_names, [task], found.id)
        if len(selected) > 1:
            raise UsageError(
                _("--task {task} names {count} tasks.").format(task=task[:60], count=len(selected)),
                _("Name one, for example {task}, or leave --task out for all.").format(
                    task=selected[0]
                ),
            )
        task = selected[0]
    stacks = found.stacks(task)
    groups = ["\n".join(_group_lines(group)) for group in _objects(stacks.get("groups"))]
    if len(groups) != 1:  # With one, the sentence is its first line.
        groups.insert(0, one_line(str(stacks.get("sentence") or ""), 2000))
    return Outcome("\n\n".join(groups), value={"job_id": found.id, **stacks})


def _group_lines(group: Mapping[str, Any]) -> Iterator[str]:
    """Yield the stack of a group as Python's traceback does: the innermost call last."""
    yield one_line(f"{group.get('who')}: {group.get('label')}", 500)
    for frame in reversed(list(_objects(group.get("frames")))):
        place = f"{frame.get('file')}:{frame.get('line')}"
        cell = f" ({frame['cell']})" if frame.get("cell") else ""
        code = f"  {frame['code']}" if frame.get("code") else ""
        yield "  " + one_line(f"{place} {frame.get('function')}{cell}{code}", 500)
    threads = group.get("threads")
    if isinstance(threads, list) and threads:
        yield "  " + ngettext(
            "and {count} other thread; --json shows it",
            "and {count} other threads; --json shows them",
            len(threads),
        ).format(count=len(threads))


def _objects(value: Any) -> Iterator[Mapping[str, Any]]:
    yield from (item for item in value or () if isinstance(item, dict))
