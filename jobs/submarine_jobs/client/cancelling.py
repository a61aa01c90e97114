"""Cancel a job in any state: through its agent, through the cluster, or before it has started.

Front ends ask the user for confirmation; this module does not.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from submarine_jobs.backends import Handle, Observation, Stage
from submarine_jobs.client.job_ownership import foreign_owner
from submarine_jobs.client.views import index_entry_of
from submarine_jobs.concurrency import call_timeout
from submarine_jobs.errors import ClusterError, NoAccessError, NoRoomError, StorageError
from submarine_jobs.tracking import close_unsubmitted, record_from_backend, save_record
from submarine_runtime.protocol import EndReason, JobRecord, State, layout
from submarine_runtime.translation import _, gettext_noop

if TYPE_CHECKING:
    from submarine_jobs.client.job import Job

#: Seconds for the agent to stop the program and save, and then for the cluster to confirm.
PATIENCE = 30.0
#: Seconds to write the cancel request, and then to read the address of the agent.
STORAGE_SECONDS = 5.0
#: Seconds between polls of the cluster.
PAUSE = 0.5
_NO_ANSWER = gettext_noop(
    "The job directory does not answer, so the cancel request was not written there."
)
_LATER = gettext_noop("its record follows when the file system answers again.")


def cancel(job: Job, why: str) -> JobRecord:
    """Cancel ``job``; see ``Job.cancel``.

    The cancel request is written to the job directory before the agent or the cluster is called.
    So a program that has not started does not start, even if the calls fail, and the end reason is
    known. If the directory is full or does not answer, only a running job, or a job that is known
    to the cluster, can be cancelled.
    """
    record = job.record()
    if record.state.ended and record.state is not State.LOST:
        return record
    by = job.session.user
    request = {"by": by, "why": why, "time": time.time()}
    write_error: StorageError | None = None
    try:
        with call_timeout(STORAGE_SECONDS):
            job.directory.publish_json_exclusive(layout.CANCEL, request)
    except NoAccessError:
        if not foreign_owner(job):
            raise
        return _cancel_shared(job)
    except StorageError as error:
        write_error = error  # a running job can still be cancelled
    no_answer = write_error if not isinstance(write_error, NoRoomError) else None
    if _cancel_by_agent(job, by, why):
        if no_answer is not None:
            return _with_note(
                job.record(),
                _("{no_answer} The agent is stopping its program; {later}").format(
                    no_answer=_(_NO_ANSWER), later=_(_LATER)
                ),
            )
        with contextlib.suppress(TimeoutError):
            record = job.wait(PATIENCE)
            _end_application(job)
            return record
    handle = job.handle or job.backend.find(job.id)
    if handle is None:
        if write_error is not None:
            raise ClusterError(
                _("{job} was not cancelled: {error}").format(job=job.id, error=write_error.message),
                write_error.fix,
            )
        # The request prevents a start. Without a claim nothing runs, so the job is closed here.
        never = Observation(Stage.ENDED, EndReason.CANCELLED)
        closed = close_unsubmitted(job.directory, never)
        if closed is not None:
            save_record(job.session.store, index_entry_of(job), closed)
            return closed
    else:
        job.handle = handle
        _stop(job, handle, write_error)
        if no_answer is not None:
            words = _("{no_answer} It was ended through {backend}, without saving; {later}").format(
                no_answer=_(_NO_ANSWER), backend=job.backend.name, later=_(_LATER)
            )
            return _with_note(_ended_on_cluster(job, handle, no_answer), words)
    with contextlib.suppress(TimeoutError):
        return job.wait(PATIENCE)
    return job.record()


def _cancel_shared(job: Job) -> JobRecord:
    """Cancel a job of another user, whose directory is not writable: through the cluster only.

    The ResourceManager checks the modify ACL. The owner's client publishes the record.
    """
    handle = job.handle
    if handle is None:
        raise ClusterError(
            _("{job} was not cancelled: the cluster has not accepted it yet.").format(job=job.id),
            _("Try again later."),
        )
    job.backend.stop(handle)
    with contextlib.suppress(TimeoutError):
        return job.wait(PATIENCE)
    return job.record()


def _stop(job: Job, handle: Handle, write_error: StorageError | None) -> None:
    try:
        job.backend.stop(handle)
    except ClusterError as error:
        if write_error is None:
            raise
        words = _("{job} was not cancelled: {error} {cluster_error}").format(
            job=job.id, error=write_error.message, cluster_error=error.message
        )
        raise ClusterError(words, error.fix) from error


def _ended_on_cluster(job: Job, handle: Handle, no_answer: StorageError) -> JobRecord:
    """Return the record from the cluster when the job has ended there, or after a timeout."""
    deadline = time.monotonic() + PATIENCE
    while True:
        seen = job.backend.observe({job.id: handle}).get(job.id)
        if seen is None or not seen.active or time.monotonic() > deadline:
            return record_from_backend(index_entry_of(job), seen, no_answer)
        time.sleep(PAUSE)


def _with_note(record: JobRecord, words: str) -> JobRecord:
    return replace(record, missing=[words, *record.missing])


def _end_application(job: Job) -> None:
    """Stop the application, because YARN would restart the master of a distributed job."""
    if job.handle is None or int(job.handle.get("containers") or 1) < 2:
        return
    with contextlib.suppress(ClusterError):
        job.backend.stop(job.handle)


def _cancel_by_agent(job: Job, by: str, why: str) -> bool:
    try:
        with call_timeout(STORAGE_SECONDS):
            agent = job.agent()
        if agent is None:
            return False
        agent.cancel(by, why)
    except ClusterError:
        return False
    return True
