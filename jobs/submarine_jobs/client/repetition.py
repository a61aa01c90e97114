"""Submit a job again from its job directory, with the same bundle, values and spec."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from submarine_jobs.access import MAX_BUNDLE
from submarine_jobs.client import started_jobs as started
from submarine_jobs.client.job_ownership import foreign_owner, user_of
from submarine_jobs.errors import RefusedError, SubmarineError
from submarine_jobs.model import WorkflowOrigin
from submarine_jobs.submit import readable_secret_files, secret_sources, submit
from submarine_jobs.text import one_line
from submarine_runtime.protocol import layout
from submarine_runtime.translation import _
from submarine_runtime.values import DEFAULT_LIMIT

if TYPE_CHECKING:
    from submarine_jobs.client.job import Job


def rerun(
    job: Job,
    *,
    resume: bool = False,
    yes: bool = False,
    say: Callable[[str], None] | None = None,
) -> Job:
    """Submit a new job with the program and options of ``job``.

    With ``resume``, the newest checkpoint of ``job`` is restored before the program starts: the
    final checkpoint directory if it was saved, or else the newest complete snapshot.

    The new job runs code of the owner of ``job``: another user's job requires ``yes``. Values of
    ``--secret`` are read from their sources again, and ``say`` is called with each source.

    Raises
    ------
    RefusedError
        If the job belongs to another user who has not given this user the right to modify it, or
        ``yes`` is not given, or it has ``--secret``.
    UsageError
        If a value of ``--secret`` is not in its source any more.
    """
    owner = foreign_owner(job)
    if owner:
        _check_modify_acl(job, owner)
    if owner and not yes:
        raise RefusedError(
            _("{job} is a job of {owner}, and running it again runs their code as you.").format(
                job=job.id, owner=one_line(owner, 80)
            ),
            _("Give yes=True, or --yes in a command, if that is what you want."),
        )
    origin = WorkflowOrigin.from_environment()
    spec = replace(
        job.directory.spec(),
        rerun_of=job.id,
        lease=None,
        run_id=None,
        # The workflow is that of this process, not that of the original job.
        workflow=origin.workflow or None,
        workflow_run=origin.run or None,
        workflow_node=origin.node or None,
        yarn_tags=origin.yarn_tags,
    )
    if owner:
        # The owner of the original job does not choose the readers of this user's job.
        spec = replace(spec, share=())
    if spec.secrets and owner:
        # The specification chooses the files, and the program receives their content.
        raise RefusedError(
            _(
                "{job} is a job of {owner} with --secret {names}: their code would receive "
                "your values."
            ).format(job=job.id, owner=one_line(owner, 80), names=", ".join(spec.secrets)),
            _("Run the program as a job of your own."),
        )
    if say is not None:
        for text in secret_sources(spec.secrets):
            say(_("--secret is read again: {source}.").format(source=one_line(text)))
        for text in readable_secret_files(spec):
            say(_("warning: {text}").format(text=one_line(text)))
    if resume:
        spec = replace(spec, resume_from=job.id)
    with started.submitting():
        return submit(job.session, spec, _read(job, layout.BUNDLE), _read(job, layout.VALUES))


def _check_modify_acl(job: Job, owner: str) -> None:
    storage, directory = job.directory.storage, job.directory
    if not storage.may_execute(directory.file(layout.SPEC)):  # see storage.mark_modifiers
        raise RefusedError(
            _(
                "{user} may not run {job} of {owner} again: that requires the modify ACL of the "
                "job, which its owner gives with --share modify:{user}."
            ).format(user=one_line(user_of(job), 80), job=job.id, owner=one_line(owner, 80)),
            _("Ask the owner of the job."),
        )


def _read(job: Job, name: str) -> bytes | None:
    limit = MAX_BUNDLE if name == layout.BUNDLE else DEFAULT_LIMIT
    try:
        data = job.directory.storage.read(job.directory.file(name), 0, limit + 1)
    except FileNotFoundError:
        return None
    if len(data) > limit:
        raise SubmarineError(
            _(
                "{name} of {job} has more than {limit} MiB, so it is not the one that was "
                "submitted."
            ).format(name=name, job=job.id, limit=limit >> 20),
            _("Submit the job again from its notebook or program."),
        )
    return data
