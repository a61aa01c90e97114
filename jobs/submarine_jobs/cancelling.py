"""End a job at any point of its life: by its agent, by the cluster, or before anything has run.

Does not ask anybody whether that is meant; a mouth does.
"""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

from submarine_jobs.backends.base import Observation, Stage
from submarine_jobs.closing import close_orphan
from submarine_jobs.errors import ClusterError, NoRoomError
from submarine_jobs.observing import remember
from submarine_jobs.profile import hadoop_user
from submarine_jobs.viewing import known_of
from submarine_runtime.protocol import layout
from submarine_runtime.protocol.reasons import EndReason
from submarine_runtime.protocol.record import JobRecord
from submarine_runtime.protocol.states import State

if TYPE_CHECKING:
    from submarine_jobs.job import Job

#: Seconds for the agent to end the program and save, and then for the cluster to confirm.
PATIENCE = 30.0


def cancel(job: Job, why: str) -> JobRecord:
    """Cancel ``job``; see ``Job.cancel``.

    The wish is in the job directory before anybody is asked, so whatever is lost on the way, a
    program that has not started never will, and the end is known to have been wished. A job
    directory that is full holds no wish; then only what the cluster has heard of is ended.
    """
    record = job.record()
    if record.state.ended and record.state is not State.LOST:
        return record
    by = hadoop_user(job.session.profile.user)
    wish = {"by": by, "why": why, "time": time.time()}
    unheld: NoRoomError | None = None
    try:
        job.directory.publish_json_exclusive(layout.CANCEL, wish)
    except NoRoomError as full:
        unheld = full  # what runs can be ended all the same
    if _ask_agent(job, by, why):
        with contextlib.suppress(TimeoutError):
            record = job.wait(PATIENCE)
            _end_application(job)
            return record
    handle = job.handle or job.backend.find(job.id)
    if handle is None:
        if unheld is not None:
            raise unheld
        # Nothing runs, and the wish keeps anything from starting: the job ends here.
        never = Observation(Stage.ENDED, EndReason.CANCELLED)
        record = close_orphan(job.directory, never)
        remember(job.session.store, known_of(job), record)
        return record
    job.handle = handle
    job.backend.stop(handle)
    with contextlib.suppress(TimeoutError):
        return job.wait(PATIENCE)
    return job.record()


def _end_application(job: Job) -> None:
    """YARN would start the master of a distributed job again, which has nothing left to do."""
    if job.handle is None or int(job.handle.get("containers") or 1) < 2:
        return
    with contextlib.suppress(ClusterError):
        job.backend.stop(job.handle)


def _ask_agent(job: Job, by: str, why: str) -> bool:
    try:
        agent = job.agent()
        if agent is None:
            return False
        agent.cancel(by, why)
    except ClusterError:
        return False
    return True
