"""Let watchers of displayed jobs use the server's poll instead of their own requests."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping

from submarine_jobs.backends import Observation
from submarine_jobs.errors import ClusterError
from submarine_jobs.tracking import Target
from submarine_runtime.translation import _

#: Seconds to wait for a poll.
TIMEOUT = 120.0


class PollObserver:
    """Results of the latest poll for waiting threads; replaces ``observe_all``."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._requested: dict[str, Target] = {}
        self._started_polls = self._finished_polls = 0
        self._closed = False
        self._observations: Mapping[str, Observation] = {}
        self._failed: Mapping[str, ClusterError] = {}

    def __call__(self, targets: Iterable[Target]) -> Mapping[str, Observation]:
        """Return the observations of these jobs from the next poll; blocks until it has ended.

        Raises
        ------
        ClusterError
            If a backend did not respond to the poll.
        """
        wanted = {
            target.entry.job_id: target
            for target in targets
            if not target.entry.final and target.entry.handle is not None
        }
        if not wanted:
            return {}
        with self._condition:
            self._requested.update(wanted)
            own_poll = self._started_polls + 1
            self._condition.wait_for(
                lambda: self._closed or self._finished_polls >= own_poll, TIMEOUT
            )
            if self._finished_polls < own_poll:
                raise ClusterError(_("The server has not polled the cluster in time."))
            failed = [error for job_id, error in self._failed.items() if job_id in wanted]
            if failed:
                raise failed[0]
            return {
                job_id: self._observations[job_id]
                for job_id in wanted
                if job_id in self._observations
            }

    def begin(self) -> dict[str, Target]:
        """Start a poll; return the jobs for which threads are waiting."""
        with self._condition:
            self._started_polls += 1
            requested, self._requested = self._requested, {}
            return requested

    def finish(
        self,
        observations: Mapping[str, Observation],
        failed: Mapping[str, ClusterError] | None = None,
    ) -> None:
        """End a poll: set its observations, and errors by job."""
        with self._condition:
            self._observations, self._failed = observations, failed or {}
            self._finished_polls = self._started_polls
            self._condition.notify_all()

    def close(self) -> None:
        """Release all waiting threads."""
        with self._condition:
            self._closed = True
            self._condition.notify_all()
