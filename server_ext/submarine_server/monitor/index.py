"""Incremental reads of the local job index.

Keeps the rows of active jobs only. Does not access the cluster.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

from submarine_jobs.tracking import IndexEntry, JobStore
from submarine_runtime.protocol import State

#: Ended jobs that a list shows in addition to the active ones.
MAX_LISTED = 200
#: Seconds after a change within which another change may have the same file time.
_CLOCK_RESOLUTION = 1.0


@dataclass(frozen=True)
class IndexChanges:
    """Changed rows and the number of all jobs.

    Parameters
    ----------
    changed_jobs
        Ids of jobs that are new and active, were submitted since the first read, or have another
        state.
    whole
        The rows are all relevant rows: this is the first read, or the index was replaced.
    """

    rows: list[IndexEntry]
    total: int
    changed_jobs: frozenset[str]
    whole: bool


class JobIndex:
    """Relevant part of the index; thread-safe."""

    def __init__(self, store: JobStore) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._revision: int | None = None
        self._file_id = 0
        self._file_stamp: tuple[int, int, int] | None = None
        self._active: dict[str, IndexEntry] = {}
        #: Time of the first read. Older jobs that appear later were found in the job root.
        self._started = time.time()

    @property
    def may_have_changed(self) -> bool:
        """Return whether the index may have changed since the last ``refresh``; cheap."""
        stamp = self._store.stamp()
        return stamp != self._file_stamp or abs(time.time() - stamp[2] / 1e9) < _CLOCK_RESOLUTION

    def active(self) -> dict[str, IndexEntry]:
        """Return the jobs that have not ended, and lost ones."""
        with self._lock:
            return dict(self._active)

    def is_newest(self, row: IndexEntry) -> bool:
        """Return whether ``row`` is the latest row of its job."""
        with self._lock:
            return self._active.get(row.job_id) is row

    def refresh(self) -> IndexChanges:
        """Read the changes."""
        with self._lock:
            # Before the rows: changes during the read are read again.
            self._file_stamp = self._store.stamp()
            mark, total = self._store.mark()
            file = self._file_stamp[0]
            if (
                self._revision is None
                or mark < self._revision
                or (self._file_id and file != self._file_id)
            ):
                rows = {row.job_id: row for row in self._store.newest(MAX_LISTED)}
                rows.update((row.job_id, row) for row in self._store.unfinished())
                self._revision, self._file_id, self._active = mark, file, {}
                self._update_active(rows)
                return IndexChanges(list(rows.values()), total, frozenset(), whole=True)
            if mark == self._revision:
                return IndexChanges([], total, frozenset(), whole=False)
            rows = {row.job_id: row for row in self._store.since(self._revision)}
            self._revision, self._file_id = mark, file
            return IndexChanges(list(rows.values()), total, self._update_active(rows), whole=False)

    def _update_active(self, rows: dict[str, IndexEntry]) -> frozenset[str]:
        """Update the active jobs; return the ids of changed jobs."""
        changed_jobs = set()
        for row in rows.values():
            before = self._active.pop(row.job_id, None)
            goes_on = not row.state.ended or row.state is State.LOST
            if goes_on:
                self._active[row.job_id] = row
            new = goes_on or row.created >= self._started
            if before.state is not row.state if before is not None else new:
                changed_jobs.add(row.job_id)
        return frozenset(changed_jobs)
