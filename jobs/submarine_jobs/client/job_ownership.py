"""Find the owner of a job in the local index, or else from the file system."""

from __future__ import annotations

from typing import TYPE_CHECKING

from submarine_jobs.tracking import Owner

if TYPE_CHECKING:
    from submarine_jobs.client.job import Job


def user_of(job: Job) -> str:
    """Return the user name of this process on the cluster of the job."""
    return job.session.user


def noted_owner(job: Job) -> Owner | None:
    """Return the owner of a job from the local index, without access to the file system."""
    return job.session.store.owner(job.id)


def owner_of(job: Job) -> Owner:
    """Return the owner of a job from the index, or else from the file system.

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
    """Return the owner of a job if it is another user; empty for the user's own job.

    Raises
    ------
    ClusterError
        If the file system does not answer.
    """
    return owner_of(job).foreign_to(user_of(job))
