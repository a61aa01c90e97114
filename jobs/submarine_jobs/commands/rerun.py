"""``rerun``: submit the bundle and spec of a job again, from its job directory."""

from __future__ import annotations

from dataclasses import replace

import click

from submarine_jobs.commands.grammar import (
    Verb,
    backend_option,
    confirm_foreign,
    job_argument,
    option,
    profile_option,
    wait_for,
)
from submarine_jobs.frontends import JOB_FAILED, Frontend, Outcome
from submarine_runtime.translation import _


@click.command(
    "rerun", cls=Verb, example=("rerun digits-20261120-7f3a", "rerun last --resume --wait")
)
@job_argument
@option(
    "--resume",
    is_flag=True,
    heading="What",
    help="Go on from the job's newest checkpoint; the program looks in SUBMARINE_CHECKPOINT_DIR.",
)
@option("--yes", "-y", is_flag=True, heading="Flow", help="Do not ask for another user's job.")
@option("--wait", is_flag=True, heading="Flow", help="Stay until the new job has ended.")
@option(
    "--on-interrupt",
    type=click.Choice(("detach", "cancel")),
    default="detach",
    heading="Flow",
    help="What Ctrl-C does to a job that is waited for [detach].",
)
@profile_option
@backend_option
@click.pass_obj
def rerun(
    frontend: Frontend,
    /,
    job: str,
    resume: bool,
    yes: bool,
    wait: bool,
    on_interrupt: str,
    profile: str | None,
    backend: str | None,
) -> Outcome:
    """Run a job again: program, options and values as they were.

    It needs nothing but the job's directory, and the sources of --secret, which are read again.
    A job of another user runs that user's code as you, so it asks first.
    """
    session = frontend.session(frontend.config({"profile": profile, "backend": backend}))
    old = session.job(job)
    why = _("running it again runs their code as you")
    if not confirm_foreign(old, frontend, _("Run"), why, yes=yes, runs_code=True):
        return Outcome(_("Nothing was submitted."), value=None, exit_code=JOB_FAILED)
    new = old.rerun(resume=resume, yes=True, say=frontend.say)  # confirmed above
    facts = {"job_id": new.id, "name": new.name, "job_dir": new.job_dir, "rerun_of": old.id}
    if wait:
        waited = wait_for(new, frontend, on_interrupt=on_interrupt)
        return replace(waited, value={**facts, "record": waited.value})
    text = _("{new} is submitted, as {old} was.").format(new=new.id, old=old.id)
    if resume:
        text = _("{new} is submitted; it goes on from the newest checkpoint of {old}.").format(
            new=new.id, old=old.id
        )
    follow = f"{frontend.command} logs -f {new.id}"
    return Outcome(f"{text}\n  {follow}", value=facts, job=new)
