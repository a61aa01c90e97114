"""Poll all active jobs: one request per backend, then update the record of each job.

Blocks; runs in a thread. ``job_monitor`` decides when to poll.
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
from submarine_runtime.protocol import JobRecord, State
from submarine_runtime.translation import _

log = logging.getLogger(__name__)

#: Seconds between polls of lost jobs that are not displayed.
LOST_INTERVAL = 600.0
#: Seconds between attempts to open a profile.
_RETRY = 60.0


@dataclass
class PollResult:
    """Result of a poll.

    Parameters
    ----------
    records
        Current record of each job, with the index row that it is based on.
    failed
        Jobs that could not be observed.
    problem
        Last error, one sentence; empty if there was none.
    """

    records: dict[str, tuple[IndexEntry, JobRecord]] = field(default_factory=dict)
    observations: dict[str, Observation] = field(default_factory=dict)
    failed: dict[str, ClusterError] = field(default_factory=dict)
    problem: str = ""


class Poll:
    """Polls the backends of all profiles.

    Parameters
    ----------
    open_session
        Returns the session of a profile; raises SubmarineError if the profile is invalid.
    """

    def __init__(self, open_session: Callable[[str], Session]) -> None:
        self._open = open_session
        self._sessions: dict[str, tuple[float, Session | None]] = {}
        self._lost_polled = float("-inf")

    def run(self, active: Mapping[str, IndexEntry], displayed: Mapping[str, Target]) -> PollResult:
        """Poll once.

        Parameters
        ----------
        active
            Jobs that have not ended, and lost ones.
        displayed
            Displayed jobs, which are always polled, with the reason for waiting.
        """
        result = PollResult()
        targets = {**self._targets(active), **displayed}
        for backend, group in _by_backend(targets).items():
            self._observe(backend, group, displayed, result)
        unreachable = False
        for job_id, target in targets.items():
            if job_id in result.failed or unreachable:
                continue
            unreachable = not self._settle(target, result)
        return result

    def _observe(
        self,
        backend: Backend,
        targets: dict[str, Target],
        displayed: Mapping[str, Target],
        result: PollResult,
    ) -> None:
        handles = {
            job_id: target.entry.handle
            for job_id, target in targets.items()
            if target.entry.handle is not None
        }
        if not handles:
            return
        try:
            result.observations.update(
                backend.survey(handles, [job for job in handles if job in displayed])
            )
        except (ClusterError, RefusedError) as error:
            result.problem = error.message
            wrapped = error if isinstance(error, ClusterError) else ClusterError(error.message)
            result.failed.update(dict.fromkeys(handles, wrapped))
        except Exception as error:
            log.exception("the backend %s cannot be polled", backend.name)
            result.problem = _("The server failed to poll {backend}. See its log.").format(
                backend=backend.name
            )
            result.failed.update(dict.fromkeys(handles, ClusterError(f"{error}")))

    def _settle(self, target: Target, result: PollResult) -> bool:
        """Update one job; return False if the others would run into the same timeout."""
        known = target.entry
        session = self._session(known.profile)
        if session is None:
            return True
        try:
            record = resolve_record(target, result.observations.get(known.job_id), session.store)
        except ClusterError as error:
            result.problem = error.message
            return False
        except FileNotFoundError:
            return True
        except Exception:  # an invalid directory affects only its job
            log.exception("job %s cannot be updated", known.job_id)
            return True
        result.records[known.job_id] = (known, record)
        return True

    def _targets(self, active: Mapping[str, IndexEntry]) -> dict[str, Target]:
        now = time.monotonic()
        include_lost = now - self._lost_polled >= LOST_INTERVAL
        if include_lost:
            self._lost_polled = now
        found = {}
        for job_id, row in active.items():
            if row.state is State.LOST and not include_lost:
                continue
            session = self._session(row.profile)
            target = target_of(session, row) if session is not None else None
            if target is not None:
                found[job_id] = target
        return found

    def _session(self, profile: str) -> Session | None:
        now = time.monotonic()
        tried, session = self._sessions.get(profile, (float("-inf"), None))
        if session is None and now - tried >= _RETRY:
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


def problem_text(problem: str) -> str:
    """Return why the list may be outdated."""
    return _("The cluster does not answer: {problem}").format(problem=problem) if problem else ""
