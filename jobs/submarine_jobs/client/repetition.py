"""Repeat a job from its job directory alone: bundle, values and spec unchanged."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from submarine_jobs.access import MAX_BUNDLE
from submarine_jobs.client import started_jobs as started
from submarine_jobs.client.job_ownership import foreign_owner
from submarine_jobs.errors import RefusedError, SubmarineError
from submarine_jobs.model import Origin
from submarine_jobs.submit import submit
from submarine_jobs.text import one_line
from submarine_runtime.protocol import layout
from submarine_runtime.values import DEFAULT_LIMIT

if TYPE_CHECKING:
    from submarine_jobs.client.job import Job


def rerun(job: Job, *, resume: bool = False, yes: bool = False) -> Job:
    """Submit a new job that is the same as ``job``.

    With ``resume`` the newest checkpoint of ``job`` is put back before the program starts: the
    final ones where it ended and saved them, else the newest whole snapshot.

    It runs code that its owner wrote, so a job of another user is refused without ``yes``.

    Raises
    ------
    RefusedError
        If it is a job of another user and ``yes`` is not given.
    """
    if not yes and (owner := foreign_owner(job)):
        raise RefusedError(
            f"{job.id} is a job of {one_line(owner, 80)}, and running it again runs their code "
            "as you.",
            "Give yes=True, or --yes in a command, if that is what you want.",
        )
    origin = Origin.from_environment()
    spec = replace(
        job.directory.spec(),
        rerun_of=job.id,
        lease=None,
        run_id=None,
        # It is a part of the run that it is started from, if any, and not of its model's.
        workflow=origin.workflow or None,
        workflow_run=origin.run or None,
        workflow_node=origin.node or None,
        yarn_tags=origin.yarn_tags,
    )
    if resume:
        spec = replace(spec, resume_from=job.id)
    with started.submitting():
        return submit(job.session, spec, _read(job, layout.BUNDLE), _read(job, layout.VALUES))


def _read(job: Job, name: str) -> bytes | None:
    limit = MAX_BUNDLE if name == layout.BUNDLE else DEFAULT_LIMIT
    try:
        data = job.directory.storage.read(job.directory.file(name), 0, limit + 1)
    except FileNotFoundError:
        return None
    if len(data) > limit:
        raise SubmarineError(
            f"{name} of {job.id} has more than {limit >> 20} MiB, so it is not the one that was "
            "submitted.",
            "Submit the job anew from its notebook or program.",
        )
    return data
