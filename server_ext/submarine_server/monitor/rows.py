"""Rows of the user's jobs as JSON, from the index and from polls.

Reads the index; blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from submarine_jobs.tracking import IndexEntry, JobQuery, JobStore, Origin, bare_record
from submarine_runtime.protocol import JobRecord
from submarine_server.monitor.index import IndexChanges, JobIndex
from submarine_server.monitor.job_table import Row
from submarine_server.monitor.poll import PollResult
from submarine_server.views import row_json

#: Ids per query of the index, and maximum number of cached origins.
_IDS_PER_QUERY, _MAX_ORIGINS = 500, 5000


class _Basis(NamedTuple):
    """The data that a row of a poll was made from."""

    entry: IndexEntry
    record: JobRecord
    origin: Origin

    def equals(self, other: _Basis | None) -> bool:
        """Return whether both give the same row, and the index has not changed it in between."""
        return (
            other is not None
            and self.entry is other.entry
            and self.record == other.record
            and self.origin == other.origin
        )


class RowBuilder:
    """Creates rows.

    Parameters
    ----------
    visible_origin
        Converts the origin of a job to a path of the file browser.
    user
        The user. The index may contain jobs of other users that were opened by their id.
    """

    def __init__(
        self, store: JobStore, visible_origin: Callable[[Origin], Origin], user: str
    ) -> None:
        self._user = user
        #: Number of jobs of other users in the index.
        self._others = 0
        self.index = JobIndex(store)
        self._store = store
        self._visible_origin = visible_origin
        self._origins: dict[str, Origin] = {}
        #: Basis of each row of the last poll.
        self._polled: dict[str, _Basis] = {}

    def from_index(self) -> tuple[IndexChanges, list[Row]]:
        """Return the changes of the index and their rows."""
        changes = self.index.refresh()
        found = [(row.job_id, row.record or bare_record(row)) for row in changes.rows]
        if changes.whole or not all(self._is_own(record) for _, record in found):
            mine = self._store.page(JobQuery(user=self._user, limit=1)).total
            self._others = max(0, changes.total - mine)
        return replace(changes, total=changes.total - self._others), self._rows(found)

    def from_poll(self, result: PollResult) -> list[Row]:
        """Return the rows that a poll has changed, except of jobs for which the index is newer."""
        newest = {
            job_id: found
            for job_id, found in result.records.items()
            if self.index.is_newest(found[0]) and self._is_own(found[1])
        }
        self._read_origins(newest)
        before, self._polled = self._polled, {}
        rows: list[Row] = []
        for job_id, (entry, record) in newest.items():
            basis = _Basis(entry, record, self._origins.get(job_id, Origin()))
            self._polled[job_id] = basis
            if not basis.equals(before.get(job_id)):
                rows.append(row_json(record, basis.origin))
        return rows

    def _is_own(self, record: JobRecord) -> bool:
        return record.user in ("", self._user)

    def _rows(self, records: Sequence[tuple[str, JobRecord]]) -> list[Row]:
        records = [(job_id, record) for job_id, record in records if self._is_own(record)]
        self._read_origins(job_id for job_id, _ in records)
        return [row_json(record, self._origins.get(job_id, Origin())) for job_id, record in records]

    def _read_origins(self, job_ids: Iterable[str]) -> None:
        if len(self._origins) > _MAX_ORIGINS:
            self._origins.clear()
        missing = [job_id for job_id in job_ids if job_id not in self._origins]
        for start in range(0, len(missing), _IDS_PER_QUERY):
            some = missing[start : start + _IDS_PER_QUERY]
            found = self._store.origins(some)
            # Missing origins are not cached: a submission stores the origin after the job.
            self._origins.update((job_id, self._visible_origin(at)) for job_id, at in found.items())
