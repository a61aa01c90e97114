"""Submit a repeated request once: the client names it by an id of its own.

The id is registered in the job root, beside the starts of headless runs, before the job can run.
It is therefore known after a restart of the process, and to every process of the user. It is
forgotten with the directory of its job.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from submarine_jobs.client.job_ownership import foreign_owner
from submarine_jobs.client.run_attempts import Registration, RunStart, started_once
from submarine_jobs.errors import JobNotFoundError, RefusedError, UsageError
from submarine_jobs.text import one_line
from submarine_runtime.protocol import EndReason, State, layout
from submarine_runtime.translation import _

if TYPE_CHECKING:
    from submarine_jobs.client.job import Job
    from submarine_jobs.client.session import Session

#: Seconds to wait for the first request, and between two looks.
WAIT_SECONDS = 20.0
_PAUSE = 0.5


class RequestChangedError(UsageError):
    """The request id belongs to a request with another content."""


class RequestPendingError(RefusedError):
    """The first request with this id is still being submitted."""


@dataclass(frozen=True)
class SubmitRequest:
    """A request to submit a job, as its client names it.

    Parameters
    ----------
    request_id
        Chosen by the client, one for each job.
    digest
        Digest of the content of the request.
    """

    request_id: str
    digest: str


def submit_once(
    session: Session,
    backend: str | None,
    request: SubmitRequest,
    submit: Callable[[Callable[[str], bool]], Job],
) -> tuple[Job, bool]:
    """Submit the job of a request, or return the job that the same request has started.

    Parameters
    ----------
    backend
        Name of the backend; None: that of the profile.
    submit
        Submits the job; its parameter is called with the new job id before the job can run.

    Returns
    -------
    tuple
        The job, and whether an earlier request has started it.

    Raises
    ------
    RequestChangedError
        If the earlier request has another content.
    RequestPendingError
        If the earlier request is not finished after 20 seconds.
    """
    storage, root = session.backend(backend).job_root()
    name = f"request {request.request_id}"
    start = RunStart(storage, root, name, "request", request.digest)

    def known(newest: Registration) -> Job | None:
        if newest.content != request.digest:
            raise changed(request)
        return _accepted_job(session, start, newest.job_id)

    return started_once(start, known, submit)


def changed(request: SubmitRequest) -> RequestChangedError:
    """Return the error for a request id that belongs to another content."""
    return RequestChangedError(
        _("The request id {name} belongs to a request with another content.").format(
            name=one_line(request.request_id, 80)
        ),
        _("Choose a new id for each job, and repeat a request unchanged."),
    )


def _accepted_job(session: Session, start: RunStart, job_id: str) -> Job | None:
    """Return the registered job; None if it was removed, or its backend has not accepted it."""
    if not layout.is_job_id(job_id):
        return None
    directory = layout.job_directory(start.root, job_id)
    deadline = time.monotonic() + WAIT_SECONDS
    while start.storage.stat(directory) is not None:
        try:
            job = session.job(job_id)
        except JobNotFoundError:
            return None
        if owner := foreign_owner(job):
            raise RefusedError(
                _("{job} of an earlier request with this id is a job of {owner}.").format(
                    job=job_id, owner=one_line(owner, 80)
                ),
                _("Choose a new id."),
            )
        record = job.record()
        # A job that its backend has refused has a record and no intent.
        refused = record.state.ended and start.storage.stat(f"{directory}/{layout.INTENT}") is None
        if refused or record.reason is EndReason.NEVER_SUBMITTED:
            return None
        if record.state is not State.SUBMITTING:
            return job
        if time.monotonic() > deadline:
            raise RequestPendingError(
                _("{job} of an earlier request with this id is still being submitted.").format(
                    job=job_id
                ),
                _("Send the same request again in a minute."),
            )
        time.sleep(_PAUSE)
    return None
