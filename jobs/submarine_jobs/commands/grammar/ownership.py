"""Confirm commands on jobs of other users, and show the owner of such a job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from submarine_jobs.client import foreign_owner, noted_owner, user_of
from submarine_jobs.errors import ClusterError, UsageError
from submarine_jobs.frontends import Frontend
from submarine_jobs.text import one_line
from submarine_runtime.translation import _

if TYPE_CHECKING:
    from submarine_jobs.client import Job


def known_owner(job: Job) -> str:
    """Return ``foreign_owner``, or the record's user if the file system does not answer.

    For commands that run no code of the job. Cancelling must work without the file system.
    """
    try:
        return foreign_owner(job)
    except ClusterError:
        user = job.record().user
        return user if user != user_of(job) else ""


def confirm_foreign(
    job: Job,
    frontend: Frontend,
    act: str,
    why: str,
    *,
    yes: bool,
    option: str = "--yes",
    runs_code: bool = False,
) -> bool:
    """Ask for confirmation if a job belongs to another user; return False if declined.

    Parameters
    ----------
    act
        The verb of the question: ``Cancel``.
    why
        The consequence, one clause.
    option
        The option that confirms; empty: none.
    runs_code
        Whether the command runs code from the job directory; the record alone is not enough then.

    Raises
    ------
    ClusterError
        If ``runs_code`` and the file system does not answer.
    UsageError
        If the front end is not interactive and ``yes`` is not given.
    """
    owner = "" if yes else foreign_owner(job) if runs_code else known_owner(job)
    if not owner:
        return True
    shown = one_line(owner, 80)
    if not frontend.interactive:
        fix = (
            _("Add {option} if that is what you want.").format(option=option)
            if option
            else _("A terminal asks instead.")
        )
        raise UsageError(
            _("{job} is a job of {owner}, and {why}.").format(job=job.id, owner=shown, why=why), fix
        )
    return frontend.confirm(
        _("{job} is a job of {owner}, and {why}. {act} it?").format(
            job=job.id, owner=shown, why=why, act=act
        )
    )


def show_foreign_owner(job: Job, frontend: Frontend) -> None:
    """Show the owner of a job of another user, if the index has it.

    This makes no request to the file system.
    """
    noted = noted_owner(job)
    if noted is not None and (owner := noted.foreign_to(user_of(job))):
        frontend.say(_("{job} is a job of {owner}.").format(job=job.id, owner=one_line(owner, 80)))
