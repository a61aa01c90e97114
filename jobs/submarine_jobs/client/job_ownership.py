"""Find the owner of a job: in the index of this machine, else from the file system."""

from __future__ import annotations

from typing import TYPE_CHECKING

from submarine_jobs.model import hadoop_user
from submarine_jobs.tracking import Owner

if TYPE_CHECKING:
    from submarine_jobs.client.job import Job


def user_of(job: Job) -> str:
    """The user as whom this process talks to the job's cluster."""
    return hadoop_user(job.session.profile.user)


def noted_owner(job: Job) -> Owner | None:
    """The owner of a job as the index of this machine has it; asks no file system."""
    return job.session.store.owner(job.id)


def owner_of(job: Job) -> Owner:
    """The owner of a job; asks the file system where the index does not know.

    Raises
    ------
    ClusterError
        If the file system does not answer.
    """
    noted = noted_owner(job)
    if noted is None:
        found = job.directory.storage.stat(job.directory.path)
        noted = Owner(found.owner if found is not None else "", job.record().user)
        if found is not None:
            job.session.store.put_owner(job.id, noted)
    return noted


def foreign_owner(job: Job) -> str:
    """Name of another user whose job it is; empty for a job of one's own.

    Raises
    ------
    ClusterError
        If the file system does not answer.
    """
    return owner_of(job).foreign_to(user_of(job))
