"""Metrics of displayed jobs: one reader per job, for all connections.

Reads new samples from the job directory while the job is displayed.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from submarine_jobs.errors import ClusterError, SubmarineError
from submarine_jobs.outputs import MetricsReader, Row
from submarine_server.displays.shared import SharedPool

if TYPE_CHECKING:
    from submarine_jobs.client import Job
    from submarine_server.monitor import JobMonitor
    from submarine_server.service import JobService

#: Interval between reads in seconds: minimum, maximum, and its ratio to the age of the job. Old
#: jobs ship samples rarely, and each read costs two directory listings per task.
MIN_INTERVAL, MAX_INTERVAL, AGE_FACTOR = 3.0, 60.0, 1 / 64
#: Seconds before a job directory that did not respond is read again.
RETRY = 10.0


@dataclass(frozen=True)
class MetricsUpdate:
    """New samples for a connection, and the number of samples that it has with them."""

    rows: list[Row]
    count: int
    ended: bool


class JobMetrics:
    """Samples of one job."""

    def __init__(self) -> None:
        self._rows: list[Row] = []
        self._reads = 0
        self._ended = False
        self._error: BaseException | None = None
        self._changed = asyncio.Event()

    async def changes_since(self, previous: MetricsUpdate | None) -> MetricsUpdate:
        """Return the samples after ``previous``; with None, wait for the first read and return all.

        Raises
        ------
        SubmarineError
            If the job or its directory cannot be read.
        """
        count = previous.count if previous is not None else 0
        while True:
            if self._error is not None:
                raise self._error
            news = len(self._rows) > count or self._ended
            if self._reads and (news or previous is None):
                rows = _in_order(self._rows[count:])
                return MetricsUpdate(rows, len(self._rows), self._ended)
            await self._changed.wait()

    def add(self, rows: list[Row], *, ended: bool) -> None:
        """Add the samples of a read."""
        self._rows += rows
        self._reads += 1
        self._ended = ended
        self._notify()

    def fail(self, error: BaseException) -> None:
        """Mark the samples as unavailable."""
        self._error = error
        self._notify()

    @property
    def loaded(self) -> bool:
        """Whether the samples were read at least once."""
        return self._reads > 0

    @property
    def failed(self) -> bool:
        """Whether reading failed."""
        return self._error is not None

    def _notify(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()


class MetricsDisplays:
    """Metrics of displayed jobs of a server."""

    def __init__(self, service: JobService, monitor: JobMonitor) -> None:
        self._service = service
        self._monitor = monitor
        self._shared = SharedPool(JobMetrics, self._work, lambda metrics: metrics.failed)

    def open(self, job_id: str) -> AbstractAsyncContextManager[JobMetrics]:
        """Return a context manager with the metrics of a job."""
        return self._shared.open(job_id)

    async def _work(self, job_id: str, metrics: JobMetrics) -> None:
        try:
            job = await self._service.job(job_id)
            with self._monitor.keep_polling():  # to detect the end of the job
                await self._read(job, metrics)
        except (SubmarineError, TimeoutError) as error:
            metrics.fail(error)
        except Exception as error:
            metrics.fail(error)
            raise

    async def _read(self, job: Job, metrics: JobMetrics) -> None:
        reader = MetricsReader(job.directory)
        ended = False
        while not ended:
            # Check before reading: the samples are complete if the job has ended.
            ended, age = await self._service.call_local(_state_of, job)
            pause = min(MAX_INTERVAL, max(MIN_INTERVAL, age * AGE_FACTOR))
            try:
                rows = await self._service.call(reader.fresh, timeout=120.0)
            except (ClusterError, TimeoutError):
                if not metrics.loaded:
                    raise
                ended = False  # keep the metrics until the directory responds
                pause = max(pause, RETRY)
            else:
                metrics.add(rows, ended=ended)
            if not ended:
                await asyncio.sleep(pause)


def _state_of(job: Job) -> tuple[bool, float]:
    """Return whether the final record is known, and the age of the job in seconds."""
    known = job.index_entry()
    if known is None:
        return False, 0.0
    return known.final, time.time() - known.created


def _in_order(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: (row.task, row.epoch, row.attempt, row.time))
