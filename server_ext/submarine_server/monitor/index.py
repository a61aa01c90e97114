"""What this machine's index says of jobs, read as it changes: final rows cost nothing to keep.

Holds the rows of jobs that go on, and tells of the newest others once. Asks no cluster.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

from submarine_jobs.tracking import IndexEntry, JobStore
from submarine_runtime.protocol.states import State

#: Jobs that a list shows besides those that go on.
NEWEST = 200
#: Seconds after a change of the index in which another may go by unseen: clocks of file systems
#: are coarse.
_COARSE = 1.0


@dataclass(frozen=True)
class News:
    """Rows that have changed, and how many jobs there are.

    Parameters
    ----------
    moved
        Ids of those that are new and go on or were submitted since the first look, and of those
        that have another state than before.
    whole
        Whether the rows are all that matter, because there was no look before or the index is
        another one.
    """

    rows: list[IndexEntry]
    total: int
    moved: frozenset[str]
    whole: bool


class KnownJobs:
    """The index as far as it is of interest; for any thread."""

    def __init__(self, store: JobStore) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._mark: int | None = None
        self._file = 0
        self._stamp: tuple[int, int, int] | None = None
        self._going_on: dict[str, IndexEntry] = {}
        #: When the first look was; what is found later and is older was found in the job root.
        self._began = time.time()

    @property
    def changed(self) -> bool:
        """Whether the index may have changed since the last ``refresh``; cheap."""
        stamp = self._store.stamp()
        return stamp != self._stamp or abs(time.time() - stamp[2] / 1e9) < _COARSE

    def going_on(self) -> dict[str, IndexEntry]:
        """The jobs that have not ended as far as is known, and those that were lost."""
        with self._lock:
            return dict(self._going_on)

    def is_newest(self, row: IndexEntry) -> bool:
        """Whether nothing newer than ``row`` has been read."""
        with self._lock:
            return self._going_on.get(row.job_id) is row

    def refresh(self) -> News:
        """Read what has changed."""
        with self._lock:
            # Before the rows: what changes meanwhile is read again.
            self._stamp = self._store.stamp()
            mark, total = self._store.mark()
            file = self._stamp[0]
            if self._mark is None or mark < self._mark or (self._file and file != self._file):
                rows = {row.job_id: row for row in self._store.newest(NEWEST)}
                rows.update((row.job_id, row) for row in self._store.unfinished())
                self._mark, self._file, self._going_on = mark, file, {}
                self._keep(rows)
                return News(list(rows.values()), total, frozenset(), whole=True)
            if mark == self._mark:
                return News([], total, frozenset(), whole=False)
            rows = {row.job_id: row for row in self._store.since(self._mark)}
            self._mark, self._file = mark, file
            return News(list(rows.values()), total, self._keep(rows), whole=False)

    def _keep(self, rows: dict[str, IndexEntry]) -> frozenset[str]:
        """Note which jobs go on; returns those that have ``moved``."""
        moved = set()
        for row in rows.values():
            before = self._going_on.pop(row.job_id, None)
            goes_on = not row.state.ended or row.state is State.LOST
            if goes_on:
                self._going_on[row.job_id] = row
            new = goes_on or row.created >= self._began
            if before.state is not row.state if before is not None else new:
                moved.add(row.job_id)
        return frozenset(moved)
