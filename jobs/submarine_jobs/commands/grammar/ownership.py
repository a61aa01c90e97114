"""The question before a command acts on a job of another user, and its name where one is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from submarine_jobs.client import foreign_owner, noted_owner, user_of
from submarine_jobs.errors import ClusterError, UsageError
from submarine_jobs.frontends import Frontend
from submarine_jobs.text import one_line

if TYPE_CHECKING:
    from submarine_jobs.client import Job


def owner_as_known(job: Job) -> str:
    """As ``foreign_owner``, by the record alone where the file system does not answer.

    For acts that run no code: a job must be ended while the file system is away.
    """
    try:
        return foreign_owner(job)
    except ClusterError:
        user = job.record().user
        return user if user != user_of(job) else ""


def ask_if_foreign(
    job: Job,
    frontend: Frontend,
    act: str,
    why: str,
    *,
    yes: bool,
    option: str = "--yes",
    runs_code: bool = False,
) -> bool:
    """Ask before acting on a job of another user; False when the answer is no.

    Parameters
    ----------
    act
        What is about to be done: ``Cancel``.
    why
        What that means, one clause.
    option
        The option that says ``yes``; empty: there is none.
    runs_code
        Whether the act runs what the job's directory holds: the record alone is not enough then.

    Raises
    ------
    ClusterError
        If ``runs_code`` and the file system does not answer.
    UsageError
        If no person can be asked and ``yes`` is not given.
    """
    owner = "" if yes else foreign_owner(job) if runs_code else owner_as_known(job)
    if not owner:
        return True
    shown = one_line(owner, 80)
    if not frontend.interactive:
        fix = f"Add {option} if that is what you want." if option else "A terminal asks instead."
        raise UsageError(f"{job.id} is a job of {shown}, and {why}.", fix)
    return frontend.confirm(f"{job.id} is a job of {shown}, and {why}. {act} it?")


def say_if_foreign(job: Job, frontend: Frontend) -> None:
    """Name the owner of a job of another user that is about to be shown.

    By what the index knows: to look at a job asks the file system nothing more.
    """
    noted = noted_owner(job)
    if noted is not None and (owner := noted.foreign_to(user_of(job))):
        frontend.say(f"{job.id} is a job of {one_line(owner, 80)}.")
