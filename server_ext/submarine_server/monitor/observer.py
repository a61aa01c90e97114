"""Lets threads that want to know how the backends see their jobs wait for the server's one poll.

It takes the place of ``observe_all`` in the watcher of displayed jobs, so that this one asks no
question of its own. Does not ask anybody itself (``poll``).
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping

from submarine_jobs.backends import Observation
from submarine_jobs.errors import ClusterError
from submarine_jobs.tracking import Target

#: Seconds after which a poll that nobody makes counts as a cluster that does not answer.
PATIENCE = 120.0


class SharedObserver:
    """What the poll has seen, for whoever waits for it."""

    def __init__(self) -> None:
        self._news = threading.Condition()
        self._asked: dict[str, Target] = {}
        self._begun = self._done = 0
        self._closed = False
        self._seen: Mapping[str, Observation] = {}
        self._failed: Mapping[str, ClusterError] = {}

    def __call__(self, targets: Iterable[Target]) -> Mapping[str, Observation]:
        """What the next poll that begins sees of these jobs; blocks until it has ended.

        Raises
        ------
        ClusterError
            If a backend did not answer the poll.
        """
        wanted = {
            target.entry.job_id: target
            for target in targets
            if not target.entry.final and target.entry.handle is not None
        }
        if not wanted:
            return {}
        with self._news:
            self._asked.update(wanted)
            mine = self._begun + 1
            self._news.wait_for(lambda: self._closed or self._done >= mine, PATIENCE)
            if self._done < mine:
                raise ClusterError("The server has not looked at the cluster for a while.")
            failed = [error for job_id, error in self._failed.items() if job_id in wanted]
            if failed:
                raise failed[0]
            return {job_id: self._seen[job_id] for job_id in wanted if job_id in self._seen}

    def begin(self) -> dict[str, Target]:
        """A poll begins; returns the jobs that somebody waits for."""
        with self._news:
            self._begun += 1
            asked, self._asked = self._asked, {}
            return asked

    def finish(
        self, seen: Mapping[str, Observation], failed: Mapping[str, ClusterError] | None = None
    ) -> None:
        """The poll has ended: what it saw, and of which jobs it saw nothing and why."""
        with self._news:
            self._seen, self._failed = seen, failed or {}
            self._done = self._begun
            self._news.notify_all()

    def close(self) -> None:
        """Let everybody go who waits."""
        with self._news:
            self._closed = True
            self._news.notify_all()
