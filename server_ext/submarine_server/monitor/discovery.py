"""Import jobs that are only in the job root, when the index was lost or is on another machine.

The newest months are checked repeatedly, older ones once, a few jobs at a time.
"""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor

from submarine_jobs import model
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

log = logging.getLogger(__name__)

#: Jobs per step, and threads that read them.
JOBS_PER_STEP, READERS = 100, 6


class JobDiscovery:
    """Walk through the job root once, then through its newest months.

    A job with an invalid record is logged once and left out.
    """

    def __init__(self) -> None:
        #: Directories without a job: URL -> modification time.
        self._empty_directories: dict[str, float] = {}
        self._remaining: list[tuple[JobDirectory, float]] = []
        self._listed_all = False

    async def step(self, session: Session) -> bool:
        """Import a batch of jobs; return whether more are waiting.

        Raises
        ------
        ClusterError
            If the file system does not respond.
        """
        return await in_thread(lambda: self._step(session))

    def _step(self, session: Session) -> bool:
        try:
            backend = session.backend()
            if not self._remaining:
                self._list(session)
        except NoClusterError:
            return False
        batch, self._remaining = self._remaining[:JOBS_PER_STEP], self._remaining[JOBS_PER_STEP:]

        def read(item: tuple[JobDirectory, float]) -> bool:
            try:
                return import_job(session, backend, item[0]) is not None
            except model.InvalidRecordError as error:
                log.warning("%s", error)
                return False

        with ThreadPoolExecutor(READERS, "submarine-discover") as pool:
            for item, found in zip(batch, pool.map(read, batch), strict=True):
                if not found:
                    remove_abandoned(*item)
                    self._empty_directories[item[0].url] = item[1]
        return bool(self._remaining)

    def _list(self, session: Session) -> None:
        months = newest_months() if self._listed_all else all_months(session)
        found = [
            (directory, changed)
            for directory, changed in unknown_jobs(session, months)
            if self._empty_directories.get(directory.url) != changed
        ]
        self._remaining = sorted(found, key=lambda item: item[1], reverse=True)
        self._listed_all = True
