"""Rows of the user's jobs as pages get them, from the index and from what a poll has seen.

Blocks for the index; decides nothing about when. The rows' form is ``views``'.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from submarine_jobs.tracking import JobQuery, JobStore, Origin, bare_record
from submarine_runtime.protocol.record import JobRecord
from submarine_server.monitor.index import KnownJobs, News
from submarine_server.monitor.job_table import Row
from submarine_server.monitor.poll import Seen
from submarine_server.views import row_json

#: Ids that go into one question to the index, and origins that are remembered.
_IDS, _KEPT = 500, 5000


class Rows:
    """Makes rows.

    Parameters
    ----------
    shown
        The origin of a job as pages may see it.
    me
        The user. The index may hold jobs of others too, which somebody has looked at by their id.
    """

    def __init__(self, store: JobStore, shown: Callable[[Origin], Origin], me: str) -> None:
        self._me = me
        #: How many jobs of the index are not the user's.
        self._others = 0
        self.known = KnownJobs(store)
        self._store = store
        self._shown = shown
        self._origins: dict[str, Origin] = {}

    def from_index(self) -> tuple[News, list[Row]]:
        """What has changed in the index, and its rows; of many, those that a list shows."""
        news = self.known.refresh()
        found = [(row.job_id, row.record or bare_record(row)) for row in news.rows]
        if news.whole or not all(self._is_mine(record) for _, record in found):
            mine = self._store.page(JobQuery(user=self._me, limit=1)).total
            self._others = max(0, news.total - mine)
        return replace(news, total=news.total - self._others), self._made(found)

    def from_poll(self, seen: Seen) -> list[Row]:
        """Rows of what a poll has seen, unless the index has said something newer meanwhile."""
        return self._made(
            [
                (job_id, record)
                for job_id, (known, record) in seen.records.items()
                if self.known.is_newest(known)
            ]
        )

    def _is_mine(self, record: JobRecord) -> bool:
        return record.user in ("", self._me)

    def _made(self, records: Sequence[tuple[str, JobRecord]]) -> list[Row]:
        records = [(job_id, record) for job_id, record in records if self._is_mine(record)]
        self._read_origins([job_id for job_id, _ in records])
        return [row_json(record, self._origins.get(job_id, Origin())) for job_id, record in records]

    def _read_origins(self, job_ids: Sequence[str]) -> None:
        if len(self._origins) > _KEPT:
            self._origins.clear()
        missing = [job_id for job_id in job_ids if job_id not in self._origins]
        for start in range(0, len(missing), _IDS):
            some = missing[start : start + _IDS]
            found = self._store.origins(some)
            # Where nothing is noted it may be soon: a submit notes it after the job.
            self._origins.update((job_id, self._shown(at)) for job_id, at in found.items())
