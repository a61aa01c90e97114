"""Wait for the end of a job in the calling thread; see ``Job.wait``.

Is told by the session's one watcher, and asks nobody itself. Does not cancel a job that lasts
longer than its caller waits.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from submarine_jobs import started
from submarine_jobs.errors import JobFailedError
from submarine_runtime.protocol.record import JobRecord
from submarine_runtime.protocol.states import State

if TYPE_CHECKING:
    from submarine_jobs.job import Job
    from submarine_jobs.view import JobView


def wait_for_end(job: Job, timeout: float | None, on_interrupt: str) -> JobRecord:
    """The final record; TimeoutError when ``timeout`` seconds have passed before."""
    ended = threading.Event()
    last: list[JobView] = []

    def look(view: JobView) -> None:
        last[:] = [view]
        if view.record.state.ended:
            ended.set()

    unsubscribe = job.session.watcher.subscribe(job, look)
    try:
        deadline = None if timeout is None else time.monotonic() + timeout
        # Waiting in slices lets an interrupt through on every platform.
        while not ended.wait(0.5):
            if deadline is not None and time.monotonic() > deadline:
                raise TimeoutError(f"Job {job.id} has not ended within {timeout:g} s.")
    except KeyboardInterrupt:
        if on_interrupt == "cancel":
            job.cancel("interrupted")
        raise
    finally:
        unsubscribe()
    return last[0].record


def wait_for_success(job: Job, timeout: float | None) -> JobRecord:
    """The same through ``Job.wait``; JobFailedError unless the job has succeeded."""
    record = job.wait(timeout)
    if record.state is not State.SUCCEEDED:
        started.told(job.id)
        raise JobFailedError(f"Job {job.id} {record.state.value}: {record.detail}")
    return record
