"""The job list of the server: the latest row of each job, with revisions for incremental updates.

Used in the event loop only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from submarine_runtime.protocol import State
from submarine_server.monitor.index import MAX_LISTED

Row = Mapping[str, Any]
#: Rows of ended jobs beyond ``MAX_LISTED`` that are kept before the oldest are dropped.
_MAX_EXTRA = 200


@dataclass(frozen=True)
class JobTableUpdate:
    """Rows for a connection: all relevant rows if ``whole``, otherwise changed ones.

    Attributes
    ----------
    total
        Number of all jobs, including those without a row.
    problem
        Why the rows may be outdated; empty if they are current.
    revision
        Revision of the table; the argument of the next ``changes_since``.
    """

    rows: list[Row]
    total: int
    problem: str
    revision: int
    whole: bool


class JobTable:
    """Rows by job id."""

    def __init__(self) -> None:
        self._rows: dict[str, Row] = {}
        self._revisions: dict[str, int] = {}
        self._revision = 0
        #: Clients below this revision are stale and need a snapshot.
        self._reset_revision = 0
        self._total = 0
        self._problem = ""
        self._event = asyncio.Event()
        self.filled = False

    def reset(self) -> None:
        """Remove all rows: the index was replaced."""
        if self._rows:
            self._rows, self._revisions = {}, {}
            self._revision += 1
            self._reset_revision = self._revision
            self._notify()

    def update(self, rows: Iterable[Row], *, total: int | None = None) -> list[Row]:
        """Update rows; return those of jobs that are new or have another state."""
        changed = []
        for row in rows:
            job_id = str(row["job_id"])
            before = self._rows.get(job_id)
            if before == row:
                continue
            if before is None or before["state"] != row["state"]:
                changed.append(row)
            self._revision += 1
            self._rows[job_id], self._revisions[job_id] = row, self._revision
            self._notify()
        if total is not None and total != self._total:
            self._total = total
            self._revision += 1
            self._notify()
        if not self.filled:
            self.filled = True
            self._revision += 1
            self._notify()
        self._drop_old_rows()
        return changed

    def set_problem(self, problem: str) -> None:
        """Set why the rows may be outdated; empty if they are current."""
        if problem != self._problem:
            self._problem = problem
            self._revision += 1
            self._notify()

    def snapshot(self) -> JobTableUpdate:
        """Return the newest rows and all rows of active jobs, newest first."""
        ordered = sorted(self._rows.values(), key=_created, reverse=True)
        rows = [row for place, row in enumerate(ordered) if place < MAX_LISTED or not _ended(row)]
        return self._make_update(rows, whole=True)

    def changes_since(self, revision: int) -> JobTableUpdate:
        """Return the rows after ``revision``, or a snapshot for a stale client."""
        if revision < self._reset_revision:
            return self.snapshot()
        rows = [row for job_id, row in self._rows.items() if self._revisions[job_id] > revision]
        return self._make_update(rows, whole=False)

    async def wait(self, revision: int) -> None:
        """Wait for a revision after ``revision``, and for the first update."""
        while not self.filled or self._revision <= revision:
            await self._event.wait()

    def _make_update(self, rows: list[Row], *, whole: bool) -> JobTableUpdate:
        return JobTableUpdate(
            rows, max(self._total, len(rows)), self._problem, self._revision, whole
        )

    def _notify(self) -> None:
        event, self._event = self._event, asyncio.Event()
        event.set()

    def _drop_old_rows(self) -> None:
        ended = [row for row in self._rows.values() if _ended(row)]
        if len(ended) <= MAX_LISTED + _MAX_EXTRA:
            return
        ended.sort(key=_created)
        for row in ended[: len(ended) - MAX_LISTED]:
            job_id = str(row["job_id"])
            del self._rows[job_id], self._revisions[job_id]


def _created(row: Row) -> float:
    created = row.get("created")
    return float(created) if created is not None else 0.0


def _ended(row: Row) -> bool:
    return State(row["state"]).ended
