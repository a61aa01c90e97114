"""``metrics``: show the resource use of a job's tasks, as a table or as JSON rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

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
from submarine_jobs.display import metrics_table
from submarine_jobs.frontends import Frontend, Outcome
from submarine_jobs.model import select_tasks
from submarine_jobs.outputs import read_metrics

if TYPE_CHECKING:
    from submarine_jobs.outputs import Row


@click.command(
    "metrics",
    cls=Verb,
    example=("metrics last", "metrics last --task worker:1", "metrics last --json"),
)
@job_argument
@option(
    "--task",
    "tasks",
    multiple=True,
    metavar="NAME",
    heading="Tasks",
    shell_complete=complete_tasks,
    help="Task such as worker:1, or all of a role; repeatable [all].",
)
@profile_option
@backend_option
@click.pass_obj
def metrics(
    frontend: Frontend,
    /,
    job: str,
    tasks: tuple[str, ...],
    profile: str | None,
    backend: str | None,
) -> Outcome:
    """Show CPU, memory, GPU, progress and training scalars of each task over its time.

    They are measured every two seconds and kept with the job; while it runs, the newest minute may
    not be there yet. --json gives every row.
    """
    found = frontend.session(frontend.config({"profile": profile, "backend": backend})).job(job)
    show_foreign_owner(found, frontend)
    selected = select_tasks(found.task_names, tasks, found.id)
    rows: list[Row] = []
    for task in selected or (None,):
        rows += read_metrics(found.directory, task)
    shown = metrics_table.table(rows)
    return Outcome(shown.text, shown.html, {"job_id": found.id, "rows": _plain(rows)})


def _plain(rows: Sequence[Row]) -> list[dict[str, Any]]:
    return [asdict(row) | {"gpus": [gpu._asdict() for gpu in row.gpus]} for row in rows]
