"""Which jobs' logs a server follows: one ``JobLog`` a job, from the first follower to the last.

Hears nothing itself (``job_log``) and does not know what followers do with it (``log_feed``).
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

from submarine_server.logs.followers import Follower
from submarine_server.logs.live_logs import JobLog
from submarine_server.service import Core

_followed: WeakKeyDictionary[Core, dict[str, JobLog]] = WeakKeyDictionary()


def join(core: Core, job_id: str, follower: Follower) -> JobLog:
    """Follow a job's logs together with all others that do."""
    jobs = _followed.setdefault(core, {})
    found = jobs.get(job_id)
    if found is None or found.ended or found.failure is not None:
        found = jobs[job_id] = JobLog(core, job_id)
    found.join(follower)
    return found


def leave(core: Core, job_id: str, job: JobLog, follower: Follower) -> None:
    """Follow it no more; the last one to leave ends it."""
    jobs = _followed.get(core, {})
    if job.leave(follower) and jobs.get(job_id) is job:
        del jobs[job_id]
