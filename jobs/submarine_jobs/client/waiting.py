"""Wait for the end of a job in the calling thread; see ``Job.wait``.

The watcher of the session provides the views. A timeout does not cancel the job.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from submarine_jobs.client import started_jobs as started
from submarine_jobs.errors import JobFailedError, with_job
from submarine_jobs.text import one_line
from submarine_runtime.protocol import JobRecord, State
from submarine_runtime.translation import _

if TYPE_CHECKING:
    from submarine_jobs.client.job import Job
    from submarine_jobs.model import JobView


def wait_for_end(job: Job, timeout: float | None, on_interrupt: str) -> JobRecord:
    """Return the final record; raise TimeoutError after ``timeout`` seconds."""
    ended = threading.Event()
    last: list[JobView] = []

    def receive(view: JobView) -> None:
        last[:] = [view]
        if view.record.state.ended:
            ended.set()

    unsubscribe = job.session.watcher.subscribe(job, receive)
    try:
        deadline = None if timeout is None else time.monotonic() + timeout
        # Waiting in slices lets an interrupt through on every platform.
        while not ended.wait(0.5):
            if deadline is not None and time.monotonic() > deadline:
                raise TimeoutError(
                    _("Job {job} has not ended within {timeout:g} s.").format(
                        job=job.id, timeout=timeout
                    )
                )
    except KeyboardInterrupt:
        if on_interrupt == "cancel":
            job.cancel("interrupted")
        raise
    finally:
        unsubscribe()
    return last[0].record


def wait_for_success(job: Job, timeout: float | None) -> JobRecord:
    """Wait with ``Job.wait``; raise JobFailedError unless the job has succeeded."""
    with with_job(job):
        record = job.wait(timeout)
        if record.state is not State.SUCCEEDED:
            started.failure_reported(job.id)
            raise JobFailedError(describe_ending(record))
    return record


def describe_ending(record: JobRecord) -> str:
    """Return one line about a job that did not succeed: id, state, and exception or reason."""
    words = _("Job {job} {state}").format(job=record.job_id, state=record.state.value)
    if record.failure is not None:
        kind, message = one_line(record.failure.type, 200), one_line(record.failure.message, 500)
        return one_line(f"{words}: {kind}: {message}", 1000)
    detail = record.detail
    if record.reason is not None:
        words += f" ({record.reason.value})"
        detail = detail or record.reason.meaning.sentence
    return one_line(f"{words}: {detail}", 1000)
