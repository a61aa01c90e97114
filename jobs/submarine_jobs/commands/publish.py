"""``publish``: copy a model to a directory of models, an object store or MLflow."""

from __future__ import annotations

import click

from submarine_jobs.commands.grammar import (
    Verb,
    backend_option,
    job_argument,
    option,
    profile_option,
    show_foreign_owner,
)
from submarine_jobs.errors import UsageError
from submarine_jobs.frontends import Frontend, Outcome
from submarine_jobs.text import one_line, size
from submarine_jobs.trained_models import Published
from submarine_runtime.snapshots import NAME, VersionError, check_name
from submarine_runtime.translation import _, ngettext


@click.command(
    "publish",
    cls=Verb,
    example=(
        "publish digits@best --to hdfs:///models/digits/7 --alias prod",
        "publish last --to mlflow:https://mlflow.example.org",
    ),
)
@job_argument
@option(
    "--to",
    "target",
    metavar="URI",
    required=True,
    heading="Where",
    help="MODEL/VERSION on HDFS, in a directory or object store; or mlflow[:URI].",
)
@option(
    "--alias",
    "aliases",
    multiple=True,
    metavar="NAME",
    heading="Where",
    help="Let this alias, such as prod, name the version. Can be repeated.",
)
@option(
    "--name",
    metavar="NAME",
    default="",
    heading="Where",
    help="Name of the registered model in MLflow [the job's name].",
)
@option("--overwrite", is_flag=True, heading="Where", help="Replace an existing version.")
@profile_option
@backend_option
@click.pass_obj
def publish(
    frontend: Frontend,
    /,
    job: str,
    target: str,
    aliases: tuple[str, ...],
    name: str,
    overwrite: bool,
    profile: str | None,
    backend: str | None,
) -> Outcome:
    """Publish a model: the version JOB@VERSION, or the final model of JOB.

    A reader sees the whole version or none of it: the manifest with the digests of all files is
    written last. An interrupted command can be repeated.
    """
    for alias in aliases:
        _check(alias)
    to_mlflow = target == "mlflow" or target.startswith("mlflow:")
    for given, words in ((overwrite, "--overwrite"), (name, "--name")):
        if given and to_mlflow is (words == "--overwrite"):
            raise UsageError(
                _("{option} has no effect with --to {target}.").format(
                    option=words, target=one_line(target, 200)
                ),
                _("Leave it out."),
            )
    session = frontend.session(frontend.config({"profile": profile, "backend": backend}))
    name_of_job, version = split_version(job)
    found = session.job(name_of_job)
    show_foreign_owner(found, frontend)
    done = found.publish(target, version, aliases=aliases, overwrite=overwrite, name=name)
    shown = f"{found.id}@{version}" if version else found.id
    return Outcome(_text(shown, done), value=_value(found.id, version, done))


def split_version(job: str) -> tuple[str, str]:
    """Return the parts of ``JOB@VERSION``; the version is empty if there is none."""
    name, mark, version = job.rpartition("@")
    return (name, version) if mark and NAME.match(version) else (job, "")


def _check(alias: str) -> None:
    if not alias:
        raise UsageError(_("--alias has no name."))
    try:
        check_name(alias)
    except VersionError as exc:
        raise UsageError(f"--alias: {exc}") from exc


def _text(name: str, done: Published) -> str:
    files = ngettext("{count} file", "{count} files", done.count).format(count=done.count)
    sentence = (
        _("{model} was published already: {url}, {files} of {size}, sha256 {digest}.")
        if done.already
        else _("{model} is published: {url}, {files} of {size}, sha256 {digest}.")
    )
    text = sentence.format(
        model=name,
        url=one_line(done.url, 300),
        files=files,
        size=size(done.size),
        digest=done.digest[:12],
    )
    for alias in done.aliases:
        text += _("\n  Alias {alias} names this version.").format(alias=alias)
    return text


def _value(job_id: str, version: str, done: Published) -> dict[str, object]:
    return {
        "job_id": job_id,
        "version": version,
        "url": done.url,
        "digest": done.digest,
        "size": done.size,
        "count": done.count,
        "aliases": list(done.aliases),
        "already": done.already,
        **(done.details or {}),
    }
