"""Rows of the jobs list as pages get them, from the index and from what a poll has seen.

Blocks for the index; decides nothing about when. The rows' form is ``views``'.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from submarine_jobs.observing import bare_record
from submarine_jobs.store import JobStore, Origin
from submarine_runtime.protocol.record import JobRecord
from submarine_server.views import row_json
from submarine_server.watching.board import Row
from submarine_server.watching.known import KnownJobs, News
from submarine_server.watching.poll import Seen

#: Ids that go into one question to the index, and origins that are remembered.
_IDS, _KEPT = 500, 5000


class Rows:
    """Makes rows.

    Parameters
    ----------
    shown
        The origin of a job as pages may see it.
    """

    def __init__(self, store: JobStore, shown: Callable[[Origin], Origin]) -> None:
        self.known = KnownJobs(store)
        self._store = store
        self._shown = shown
        self._origins: dict[str, Origin] = {}

    def from_index(self) -> tuple[News, list[Row]]:
        """What has changed in the index, and its rows; of many, those that a list shows."""
        news = self.known.refresh()
        found = [(row.job_id, row.record or bare_record(row)) for row in news.rows]
        return news, self._made(found)

    def from_poll(self, seen: Seen) -> list[Row]:
        """Rows of what a poll has seen, unless the index has said something newer meanwhile."""
        return self._made(
            [
                (job_id, record)
                for job_id, (known, record) in seen.records.items()
                if self.known.is_newest(known)
            ]
        )

    def _made(self, records: Sequence[tuple[str, JobRecord]]) -> list[Row]:
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
