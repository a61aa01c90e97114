"""The jobs list of the server: the newest row of each job, numbered for who wants what is new.

Lives in the event loop. Asks nobody and does not know what a row means beyond its state.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from submarine_runtime.protocol.states import State
from submarine_server.monitor.index import NEWEST

Row = Mapping[str, Any]
#: Rows of ended jobs beyond ``NEWEST`` that may gather before the oldest are dropped.
_SLACK = 200


@dataclass(frozen=True)
class Part:
    """Rows for one page; ``whole``: all that matter, else those that changed."""

    rows: list[Row]
    total: int
    problem: str
    number: int
    whole: bool


class Board:
    """Rows by job id."""

    def __init__(self) -> None:
        self._rows: dict[str, Row] = {}
        self._numbers: dict[str, int] = {}
        self._number = 0
        #: Whoever has no later number than this has rows that are no more.
        self._began_anew = 0
        self._total = 0
        self._problem = ""
        self._changed = asyncio.Event()
        self.filled = False

    def begin_anew(self) -> None:
        """Forget all rows: what comes is of another index."""
        if self._rows:
            self._rows, self._numbers = {}, {}
            self._number += 1
            self._began_anew = self._number
            self._touch()

    def put(self, rows: Iterable[Row], *, total: int | None = None) -> list[Row]:
        """Take rows; returns those whose job is new here or has another state."""
        moved = []
        for row in rows:
            job_id = str(row["job_id"])
            before = self._rows.get(job_id)
            if before == row:
                continue
            if before is None or before["state"] != row["state"]:
                moved.append(row)
            self._number += 1
            self._rows[job_id], self._numbers[job_id] = row, self._number
            self._touch()
        if total is not None and total != self._total:
            self._total = total
            self._number += 1
            self._touch()
        if not self.filled:
            self.filled = True
            self._number += 1
            self._touch()
        self._drop_old()
        return moved

    def say(self, problem: str) -> None:
        """Why the rows may be old; empty when they are fresh."""
        if problem != self._problem:
            self._problem = problem
            self._number += 1
            self._touch()

    def whole(self) -> Part:
        """The newest rows and all of jobs that go on, the newest first."""
        ordered = sorted(self._rows.values(), key=_created, reverse=True)
        rows = [row for place, row in enumerate(ordered) if place < NEWEST or not _ended(row)]
        return self._part(rows, whole=True)

    def since(self, number: int) -> Part:
        """Rows that came after ``number``; all, where those before are no more."""
        if number < self._began_anew:
            return self.whole()
        rows = [row for job_id, row in self._rows.items() if self._numbers[job_id] > number]
        return self._part(rows, whole=False)

    async def wait(self, number: int) -> None:
        """Wait until there is something after ``number``; first of all until there is anything."""
        while not self.filled or self._number <= number:
            await self._changed.wait()

    def _part(self, rows: list[Row], *, whole: bool) -> Part:
        return Part(rows, max(self._total, len(rows)), self._problem, self._number, whole)

    def _touch(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def _drop_old(self) -> None:
        ended = [row for row in self._rows.values() if _ended(row)]
        if len(ended) <= NEWEST + _SLACK:
            return
        ended.sort(key=_created)
        for row in ended[: len(ended) - NEWEST]:
            job_id = str(row["job_id"])
            del self._rows[job_id], self._numbers[job_id]


def _created(row: Row) -> float:
    created = row.get("created")
    return float(created) if created is not None else 0.0


def _ended(row: Row) -> bool:
    return State(row["state"]).ended
