"""``cancel``: end a job and keep what it has written."""

from __future__ import annotations

import click

from submarine_jobs.commands.grammar import (
    Verb,
    backend_option,
    confirm_foreign,
    job_argument,
    known_owner,
    option,
    profile_option,
)
from submarine_jobs.display import lost_if_cancelled
from submarine_jobs.errors import UsageError
from submarine_jobs.frontends import JOB_FAILED, Frontend, Outcome


@click.command("cancel", cls=Verb, example=("cancel last", "cancel digits-20261120-7f3a --yes"))
@job_argument
@option("--yes", "-y", is_flag=True, heading="Flow", help="Do not ask.")
@option("--why", metavar="TEXT", default="", heading="Flow", help="Reason, kept with the job.")
@profile_option
@backend_option
@click.pass_obj
def cancel(
    frontend: Frontend, /, job: str, yes: bool, why: str, profile: str | None, backend: str | None
) -> Outcome:
    """Cancel a job; what it has written so far stays in its job directory.

    On a terminal it asks first, and everywhere before it ends a kernel or a notebook server, whose
    variables would be lost. Cancelling a job that has ended already changes nothing.
    """
    session = frontend.session(frontend.config({"profile": profile, "backend": backend}))
    found = session.job(job)
    record = found.record()
    if record.state.ended:
        return Outcome(
            f"{found.id} has ended already: {record.state}.", value=record.to_json(), job=found
        )
    own = not known_owner(found)
    lost = lost_if_cancelled(record)
    act = f"{lost} Cancel".strip()
    if not confirm_foreign(found, frontend, act, "cancelling it ends their work", yes=yes):
        return Outcome(f"{found.id} goes on.", value=record.to_json(), exit_code=JOB_FAILED)
    if lost and not yes and not frontend.interactive:
        raise UsageError(f"{found.id} was not cancelled. {lost}", "Add --yes to cancel it.")
    if own and not yes and frontend.interactive and (lost or frontend.kind == "cli"):
        question = f"{lost} Cancel {found.id}, which is {record.state}?".strip()
        if not frontend.confirm(question):
            return Outcome(f"{found.id} goes on.", value=record.to_json(), exit_code=JOB_FAILED)
    after = found.cancel(why[:500])
    if after.state.ended:
        text = f"{found.id} has ended: {after.state}."
    else:
        text = f"{found.id} will be cancelled; it is still {after.state}."
    if after.last_known or not after.state.ended:
        text = " ".join([text, *after.missing[:1]])
    return Outcome(text, value=after.to_json(), job=found)
