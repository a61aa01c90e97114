"""Finds jobs again that only the job root knows: the index is lost, or on another machine.

The newest months first and again and again, the older ones once; a few at a time, so that nobody
waits for the rest. Brings them into the index and does nothing else.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from submarine_jobs.access import JobDirectory
from submarine_jobs.client import (
    Session,
    all_months,
    import_job,
    newest_months,
    remove_abandoned,
    unknown_jobs,
)
from submarine_jobs.concurrency import in_thread
from submarine_jobs.errors import NoClusterError

#: Jobs that are read in one step, so many at once.
STEP, READERS = 100, 6


class Discovery:
    """One walk through the job root, and later through its newest months."""

    def __init__(self) -> None:
        #: What was looked at and held no job: URL -> when it had last changed.
        self._tried: dict[str, float] = {}
        self._left: list[tuple[JobDirectory, float]] = []
        self._walked = False

    async def step(self, session: Session) -> bool:
        """Import some jobs; whether there may be more at once.

        Raises
        ------
        ClusterError
            If the file system does not answer.
        """
        return await in_thread(lambda: self._step(session))

    def _step(self, session: Session) -> bool:
        try:
            backend = session.backend()
            if not self._left:
                self._list(session)
        except NoClusterError:
            return False
        some, self._left = self._left[:STEP], self._left[STEP:]

        def read(item: tuple[JobDirectory, float]) -> bool:
            return import_job(session, backend, item[0]) is not None

        with ThreadPoolExecutor(READERS, "submarine-discover") as pool:
            for item, found in zip(some, pool.map(read, some), strict=True):
                if not found:
                    remove_abandoned(*item)
                    self._tried[item[0].url] = item[1]
        return bool(self._left)

    def _list(self, session: Session) -> None:
        months = newest_months() if self._walked else all_months(session)
        found = [
            (directory, changed)
            for directory, changed in unknown_jobs(session, months)
            if self._tried.get(directory.url) != changed
        ]
        self._left = sorted(found, key=lambda item: item[1], reverse=True)
        self._walked = True
