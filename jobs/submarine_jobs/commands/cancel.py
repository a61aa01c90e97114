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
from submarine_runtime.translation import _


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
            _("{job} has ended already: {state}.").format(job=found.id, state=record.state),
            value=record.to_json(),
            job=found,
        )
    own = not known_owner(found)
    lost = lost_if_cancelled(record)
    act = _("{lost} Cancel").format(lost=lost).strip()
    if not confirm_foreign(found, frontend, act, _("cancelling it ends their work"), yes=yes):
        return Outcome(
            _("{job} goes on.").format(job=found.id), value=record.to_json(), exit_code=JOB_FAILED
        )
    if lost and not yes and not frontend.interactive:
        raise UsageError(
            _("{job} was not cancelled. {lost}").format(job=found.id, lost=lost),
            _("Add --yes to cancel it."),
        )
    if own and not yes and frontend.interactive and (lost or frontend.kind == "cli"):
        question = (
            _("{lost} Cancel {job}, which is {state}?")
            .format(lost=lost, job=found.id, state=record.state)
            .strip()
        )
        if not frontend.confirm(question):
            return Outcome(
                _("{job} goes on.").format(job=found.id),
                value=record.to_json(),
                exit_code=JOB_FAILED,
            )
    after = found.cancel(why[:500])
    if after.state.ended:
        text = _("{job} has ended: {state}.").format(job=found.id, state=after.state)
    else:
        text = _("{job} will be cancelled; it is still {state}.").format(
            job=found.id, state=after.state
        )
    if after.last_known or not after.state.ended:
        text = " ".join([text, *after.missing[:1]])
    return Outcome(text, value=after.to_json(), job=found)
