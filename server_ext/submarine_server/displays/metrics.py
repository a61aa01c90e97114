"""The samples of jobs whose curves are on display: one reader a job, for all pages that show it.

Reads what is new in the job directory, while somebody looks. What a sample means is the core's
``metrics``; how curves are drawn from them is ``series``'.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from submarine_jobs.errors import ClusterError, SubmarineError
from submarine_jobs.outputs import MetricsReader, Row
from submarine_server.displays.shared import Shared

if TYPE_CHECKING:
    from submarine_jobs.client import Job
    from submarine_server.monitor import JobsWatch
    from submarine_server.service import Core

#: Seconds between looks: at least, at most, and as a share of the job's age, for an old job ships
#: its samples seldom; each look costs two listings a task.
FASTEST, SLOWEST, SHARE = 3.0, 60.0, 1 / 64
#: Seconds until a job directory that did not answer is read again.
SILENCE_PAUSE = 10.0


@dataclass(frozen=True)
class Taken:
    """Samples that are new to a page, and how far it has come with that."""

    rows: list[Row]
    number: int
    ended: bool


class Curves:
    """The samples of one job."""

    def __init__(self) -> None:
        self._rows: list[Row] = []
        self._looks = 0
        self._ended = False
        self._error: BaseException | None = None
        self._changed = asyncio.Event()

    async def after(self, taken: Taken | None) -> Taken:
        """What has come since ``taken``; at first all that there is, at once if there was a look.

        Raises
        ------
        SubmarineError
            If the job or its directory cannot be read.
        """
        number = taken.number if taken is not None else 0
        while True:
            if self._error is not None:
                raise self._error
            news = len(self._rows) > number or self._ended
            if self._looks and (news or taken is None):
                rows = _in_order(self._rows[number:])
                return Taken(rows, len(self._rows), self._ended)
            await self._changed.wait()

    def add(self, rows: list[Row], *, ended: bool) -> None:
        """Take what a look has brought."""
        self._rows += rows
        self._looks += 1
        self._ended = ended
        self._tell()

    def fail(self, error: BaseException) -> None:
        """There is nothing to be had."""
        self._error = error
        self._tell()

    @property
    def looked(self) -> bool:
        """Whether the samples could be read at least once."""
        return self._looks > 0

    @property
    def failed(self) -> bool:
        """Whether it cannot go on."""
        return self._error is not None

    def _tell(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()


class MetricsReaders:
    """All readers of a server."""

    def __init__(self, core: Core, jobs: JobsWatch) -> None:
        self._core = core
        self._jobs = jobs
        self._shared = Shared(Curves, self._work, lambda curves: curves.failed)

    def open(self, job_id: str) -> AbstractAsyncContextManager[Curves]:
        """The samples of a job, while a page shows them."""
        return self._shared.open(job_id)

    async def _work(self, job_id: str, curves: Curves) -> None:
        try:
            job = await self._core.job(job_id)
            with self._jobs.looking():  # for its end
                await self._read(job, curves)
        except (SubmarineError, TimeoutError) as error:
            curves.fail(error)
        except Exception as error:
            curves.fail(error)
            raise

    async def _read(self, job: Job, curves: Curves) -> None:
        reader = MetricsReader(job.directory)
        ended = False
        while not ended:
            # Before the samples: they are complete when the job has ended.
            ended, age = await self._core.here(_state_of, job)
            pause = min(SLOWEST, max(FASTEST, age * SHARE))
            try:
                rows = await self._core.call(reader.fresh, timeout=120.0)
            except (ClusterError, TimeoutError):
                if not curves.looked:
                    raise
                ended = False  # the curves stay as they are until the directory answers again
                pause = max(pause, SILENCE_PAUSE)
            else:
                curves.add(rows, ended=ended)
            if not ended:
                await asyncio.sleep(pause)


def _state_of(job: Job) -> tuple[bool, float]:
    """Whether the job's last word is known, and its age in seconds."""
    known = job.index_entry()
    if known is None:
        return False, 0.0
    return known.final, time.time() - known.created


def _in_order(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: (row.task, row.epoch, row.attempt, row.time))
