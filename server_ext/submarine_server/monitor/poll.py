"""One look at all jobs that go on: one survey a backend, and what follows from it for each job.

Blocks, in a thread of its own. Does not decide when to look (``jobs``) and keeps nothing but which
jobs were lost long ago.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from submarine_jobs.backends import Backend, Observation
from submarine_jobs.client import Session, target_of
from submarine_jobs.errors import ClusterError, RefusedError, SubmarineError
from submarine_jobs.tracking import IndexEntry, Target, resolve_record
from submarine_runtime.protocol.record import JobRecord
from submarine_runtime.protocol.states import State

log = logging.getLogger(__name__)

#: Seconds between looks at jobs that the cluster has lost and nobody has on display.
LOST_EVERY = 600.0
#: Seconds until a profile that cannot be opened is tried again.
_TRY_AGAIN = 60.0


@dataclass
class Seen:
    """What one look has brought.

    Parameters
    ----------
    records
        Job -> its record now, with the row that it comes from.
    failed
        Jobs of which nothing could be seen.
    problem
        What went wrong, one sentence; empty when nothing did.
    """

    records: dict[str, tuple[IndexEntry, JobRecord]] = field(default_factory=dict)
    observations: dict[str, Observation] = field(default_factory=dict)
    failed: dict[str, ClusterError] = field(default_factory=dict)
    problem: str = ""


class Poll:
    """Looks when it is called.

    Parameters
    ----------
    open_session
        The session of a profile; raises SubmarineError where there is none.
    """

    def __init__(self, open_session: Callable[[str], Session]) -> None:
        self._open = open_session
        self._sessions: dict[str, tuple[float, Session | None]] = {}
        self._lost_looked = float("-inf")

    def look(self, going_on: Mapping[str, IndexEntry], shown: Mapping[str, Target]) -> Seen:
        """See ``Seen``.

        Parameters
        ----------
        going_on
            Jobs that have not ended, and those that were lost.
        shown
            Jobs on display, which are looked at in any case, and explained.
        """
        seen = Seen()
        targets = {**self._targets(going_on), **shown}
        for backend, some in _by_backend(targets).items():
            self._survey(backend, some, shown, seen)
        hopeless = False
        for job_id, target in targets.items():
            if job_id in seen.failed or hopeless:
                continue
            hopeless = not self._settle(target, seen)
        return seen

    def _survey(
        self, backend: Backend, some: dict[str, Target], shown: Mapping[str, Target], seen: Seen
    ) -> None:
        handles = {
            job_id: target.entry.handle
            for job_id, target in some.items()
            if target.entry.handle is not None
        }
        if not handles:
            return
        try:
            seen.observations.update(
                backend.survey(handles, [job for job in handles if job in shown])
            )
        except (ClusterError, RefusedError) as error:
            seen.problem = error.message
            wrapped = error if isinstance(error, ClusterError) else ClusterError(error.message)
            seen.failed.update(dict.fromkeys(handles, wrapped))
        except Exception as error:
            log.exception("the backend %s cannot be asked", backend.name)
            seen.problem = f"The server failed at asking {backend.name}; its log says how."
            seen.failed.update(dict.fromkeys(handles, ClusterError(f"{error}")))

    def _settle(self, target: Target, seen: Seen) -> bool:
        """What follows for one job; False where the next ones would wait as long for nothing."""
        known = target.entry
        session = self._session(known.profile)
        if session is None:
            return True
        try:
            record = resolve_record(target, seen.observations.get(known.job_id), session.store)
        except ClusterError as error:
            seen.problem = error.message
            return False
        except FileNotFoundError:
            return True
        except Exception:  # a directory that holds nonsense is that job's trouble
            log.exception("job %s cannot be looked at", known.job_id)
            return True
        seen.records[known.job_id] = (known, record)
        return True

    def _targets(self, going_on: Mapping[str, IndexEntry]) -> dict[str, Target]:
        now = time.monotonic()
        lost_too = now - self._lost_looked >= LOST_EVERY
        if lost_too:
            self._lost_looked = now
        found = {}
        for job_id, row in going_on.items():
            if row.state is State.LOST and not lost_too:
                continue
            session = self._session(row.profile)
            target = target_of(session, row) if session is not None else None
            if target is not None:
                found[job_id] = target
        return found

    def _session(self, profile: str) -> Session | None:
        now = time.monotonic()
        tried, session = self._sessions.get(profile, (float("-inf"), None))
        if session is None and now - tried >= _TRY_AGAIN:
            try:
                session = self._open(profile)
            except (SubmarineError, OSError):
                session = None
            self._sessions[profile] = (now, session)
        return session


def _by_backend(targets: Mapping[str, Target]) -> dict[Backend, dict[str, Target]]:
    found: dict[Backend, dict[str, Target]] = {}
    for job_id, target in targets.items():
        found.setdefault(target.backend, {})[job_id] = target
    return found


def sentence(problem: str) -> str:
    """Why the list may be old."""
    return f"The cluster does not answer: {problem}" if problem else ""
