"""``show``: show the current state of one job."""

from __future__ import annotations

import click

from submarine_jobs import display
from submarine_jobs.commands.grammar import (
    Verb,
    backend_option,
    job_argument,
    option,
    profile_option,
    show_foreign_owner,
)
from submarine_jobs.frontends import Frontend, Outcome
from submarine_jobs.outputs import format_results


@click.command(
    "show",
    cls=Verb,
    example=("show digits-20261120-7f3a", "show last --json", "show alice/digits-20261120-7f3a"),
)
@job_argument
@option(
    "--tasks",
    "every",
    is_flag=True,
    heading="What",
    help="A table of all tasks, however many, in place of the job.",
)
@profile_option
@backend_option
@click.pass_obj
def show(
    frontend: Frontend, /, job: str, every: bool, profile: str | None, backend: str | None
) -> Outcome:
    """Show one job: state and reason, tasks, times, resources, result, links, end of its log.

    JOB is an id, the beginning of one, a name (the newest job of that name), last, or USER/ID or
    a job directory's URL for a job that another user shares with you.
    """
    session = frontend.session(frontend.config({"profile": profile, "backend": backend}))
    found = session.job(job)
    show_foreign_owner(found, frontend)
    view = found.view()
    if every:
        tasks = display.all_tasks(view)
        value = view.record.to_json()
        return Outcome(tasks.text, tasks.html, {"job_id": found.id, "tasks": value["tasks"]})
    # A notebook shows the job card, which reads the values itself.
    result = format_results(found, view.record) if frontend.kind == "cli" else {}
    return Outcome(
        text=display.text(view, command=frontend.command, result=result),
        html=display.html(view),
        value=view.record.to_json(),
        job=found,
    )
