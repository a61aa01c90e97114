"""``wait``: wait until jobs have ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from submarine_jobs.commands.grammar import (
    Verb,
    backend_option,
    complete_jobs,
    option,
    profile_option,
    show_foreign_owner,
    wait_for,
)
from submarine_jobs.errors import UsageError
from submarine_jobs.frontends import INTERRUPTED, Frontend, Outcome
from submarine_runtime.translation import _

if TYPE_CHECKING:
    from submarine_jobs.client import Job


@click.command("wait", cls=Verb, example=("wait last", "wait digits-20261120-7f3a --quiet"))
@click.argument("jobs", metavar="[JOB...]", nargs=-1, required=False, shell_complete=complete_jobs)
@option("--quiet", is_flag=True, heading="Flow", help="Do not show the log meanwhile.")
@option(
    "--on-interrupt",
    type=click.Choice(("detach", "cancel")),
    default="detach",
    heading="Flow",
    help="What Ctrl-C does to the job [detach].",
)
@profile_option
@backend_option
@click.pass_obj
def wait(
    frontend: Frontend,
    /,
    jobs: tuple[str, ...],
    quiet: bool,
    on_interrupt: str,
    profile: str | None,
    backend: str | None,
) -> Outcome:
    """Wait until all these jobs have ended; exit code 1 when one did not succeed.

    In a notebook a bare %submarine wait means all jobs that the notebook has started.
    """
    if not jobs:
        found = _own_jobs(frontend)
        if not found:
            return Outcome(text=_("No job of this notebook is waited for any more."), value=[])
    else:
        session = frontend.session(frontend.config({"profile": profile, "backend": backend}))
        found = [session.job(text) for text in dict.fromkeys(jobs)]
        for job in found:
            show_foreign_owner(job, frontend)
    if len(found) == 1:
        frontend.bind(found[0])
    outcomes: list[Outcome] = []
    for job in found:
        outcomes.append(wait_for(job, frontend, on_interrupt=on_interrupt, log=not quiet))
        if outcomes[-1].exit_code == INTERRUPTED:
            break
    if len(outcomes) == 1:
        return outcomes[0]
    return Outcome(
        text="\n\n".join(outcome.text for outcome in outcomes),
        value=[outcome.value for outcome in outcomes],
        exit_code=max(outcome.exit_code for outcome in outcomes),
    )


def _own_jobs(frontend: Frontend) -> list[Job]:
    own = frontend.own_jobs
    if own is None:
        raise UsageError(
            _("wait does not say for which job."),
            _("Name one or more; `{command} list` shows them, and last is the newest.").format(
                command=frontend.command
            ),
        )
    return list(own)
