"""``save``: save a version of a job's model while the job runs."""

from __future__ import annotations

import click

from submarine_jobs.commands.grammar import (
    Verb,
    backend_option,
    confirm_foreign,
    job_argument,
    option,
    profile_option,
)
from submarine_jobs.frontends import JOB_FAILED, Frontend, Outcome
from submarine_jobs.text import one_line, size
from submarine_runtime.translation import _, ngettext


@click.command("save", cls=Verb, example=("save last", "save digits-20261120-7f3a --name best"))
@job_argument
@option("--name", metavar="NAME", default="", heading="What", help="Name of the version [v1, ...].")
@option("--yes", "-y", is_flag=True, heading="Flow", help="Do not ask for another user's job.")
@profile_option
@backend_option
@click.pass_obj
def save(
    frontend: Frontend, /, job: str, name: str, yes: bool, profile: str | None, backend: str | None
) -> Outcome:
    """Save a job's model as it is now, as a named version in its job directory.

    Training goes on meanwhile: files that are just being written are waited for. After the end of
    the job its final model becomes the version.
    """
    session = frontend.session(frontend.config({"profile": profile, "backend": backend}))
    found = session.job(job)
    if not confirm_foreign(
        found, frontend, _("Save"), _("a version is written to their job"), yes=yes
    ):
        return Outcome(_("Nothing was saved."), value=None, exit_code=JOB_FAILED)
    version = found.save_model(name)
    files = ngettext("{count} file", "{count} files", version.count).format(count=version.count)
    text = _("{job}: version {version} is saved, {files} of {size}, sha256 {digest}.").format(
        job=found.id,
        version=version.name,
        files=files,
        size=size(version.size),
        digest=one_line(version.digest, 12),
    )
    if version.left_out:
        text += _("\nLeft out, being written at that moment: {left_out}.").format(
            left_out=one_line(", ".join(version.left_out))
        )
    text += f"\n  {frontend.command} models {found.id}"
    return Outcome(text, value={"job_id": found.id, **version.to_json()})
