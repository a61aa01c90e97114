"""Whose job it is, and the question before anybody acts on somebody else's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from submarine_jobs.commands.mouth import Mouth
from submarine_jobs.display.untrusted import one_line
from submarine_jobs.errors import UsageError
from submarine_jobs.profile import hadoop_user

if TYPE_CHECKING:
    from submarine_jobs.job import Job


def user_of(job: Job) -> str:
    """The user as whom this process talks to the job's cluster."""
    return hadoop_user(job.session.profile.user)


def ask_if_foreign(job: Job, mouth: Mouth, act: str, why: str, *, yes: bool) -> bool:
    """Ask before acting on a job of another user; False when the answer is no.

    Parameters
    ----------
    act
        What is about to be done: ``Cancel``.
    why
        What that means, one clause.

    Raises
    ------
    UsageError
        If nobody can be asked and ``--yes`` is not given.
    """
    owner = job.record().user
    if yes or owner == user_of(job):
        return True
    shown = one_line(owner or "an unknown user", 80)
    if not mouth.interactive:
        raise UsageError(
            f"{job.id} is a job of {shown}, and {why}.", "Add --yes if that is what you want."
        )
    return mouth.confirm(f"{job.id} is a job of {shown}, and {why}. {act} it?")
