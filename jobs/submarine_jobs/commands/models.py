"""``models``: list the saved versions of a job's model, or download one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from submarine_jobs.commands.grammar import (
    Verb,
    backend_option,
    job_argument,
    option,
    profile_option,
    show_foreign_owner,
)
from submarine_jobs.display import columns
from submarine_jobs.errors import UsageError
from submarine_jobs.frontends import Frontend, Outcome
from submarine_jobs.outputs import download_version, find_version
from submarine_jobs.text import one_line, size, timestamp
from submarine_jobs.trained_models import lineage_rows
from submarine_runtime.translation import _, gettext_noop

if TYPE_CHECKING:
    from submarine_jobs.client import Job
    from submarine_jobs.outputs import ModelVersion

_COLUMNS = (
    gettext_noop("VERSION"),
    gettext_noop("SAVED"),
    gettext_noop("SIZE"),
    gettext_noop("FILES"),
    gettext_noop("SHA256"),
)


def _complete_folder(
    _ctx: click.Context, _param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    return [CompletionItem(incomplete, type="dir")]


@click.command(
    "models",
    cls=Verb,
    example=(
        "models last",
        "models last --show best",
        "models last --download v1 --to ./digits-v1",
    ),
)
@job_argument
@option(
    "--show",
    "shown",
    metavar="VERSION",
    heading="Details",
    help="Show where this version comes from: program, data, parameters, metrics.",
)
@option("--download", metavar="VERSION", heading="Copy", help="Copy this version here.")
@option(
    "--to",
    "target",
    metavar="DIR",
    heading="Copy",
    help="Where to; a new or empty directory [the version's name].",
    shell_complete=_complete_folder,
)
@profile_option
@backend_option
@click.pass_obj
def models(
    frontend: Frontend,
    /,
    job: str,
    shown: str | None,
    download: str | None,
    target: str | None,
    profile: str | None,
    backend: str | None,
) -> Outcome:
    """List the versions of a job's model that were saved, with time, size and digest.

    With --download one of them is copied to this machine and checked against its digest.
    """
    if shown is not None and download is not None:
        raise UsageError(_("--show and --download exclude each other."), _("Leave one out."))
    if target is not None and download is None:
        raise UsageError(
            _("--to says where to, but not which version."), _("Add --download VERSION.")
        )
    session = frontend.session(frontend.config({"profile": profile, "backend": backend}))
    found = session.job(job)
    show_foreign_owner(found, frontend)
    if shown is not None:
        return _details(found, find_version(found.directory, shown))
    if download is not None:
        path = download_version(found.directory, download, target or download)
        copied = {"job_id": found.id, "version": download, "path": str(path.resolve())}
        return Outcome(
            _("Version {download} of {job} is in {path}.").format(
                download=download, job=found.id, path=path
            ),
            value=copied,
        )
    saved = found.models()
    value = {"job_id": found.id, "versions": [version.to_json() for version in saved]}
    if not saved:
        text = _("{job} has no saved versions.\n  {command} save {job}").format(
            job=found.id, command=frontend.command
        )
        return Outcome(text, value=value)
    rows = [_row(version) for version in saved]
    return Outcome(columns.text(_COLUMNS, rows), columns.html(_COLUMNS, rows), value)


def _details(job: Job, version: ModelVersion) -> Outcome:
    lineage = job.lineage(version.name)
    digest = one_line(version.digest, 64)
    rows = [
        (_("Version"), version.name),
        (_("Saved"), timestamp(version.time)),
        (_("Size"), f"{size(version.size)}, sha256 {digest}"),
        *lineage_rows(lineage),
    ]
    text = "\n".join(f"{label}: {words}" for label, words in rows)
    value = {"job_id": job.id, **version.to_json(), "lineage": lineage}
    return Outcome(text, columns.html((_("VERSION"), version.name), rows[1:]), value)


def _row(version: ModelVersion) -> tuple[str, ...]:
    count, digest = str(version.count), one_line(version.digest, 64)
    return (version.name, timestamp(version.time), size(version.size), count, digest)
