"""Monitor all jobs of the server's user: read the index, poll the backends, discover lost jobs.

While a page is open, the monitor polls often after a change and rarely when nothing changes.
Without pages it polls only once after the start. The index is read at the start, so that the first
page has a list at once. Jobs that kernels of this machine submit appear in the index without a
request to the cluster.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sqlite3
import time
from collections.abc import Callable, Coroutine, Iterator
from typing import TYPE_CHECKING, Any

from submarine_jobs.concurrency import in_thread
from submarine_jobs.errors import ClusterError, SubmarineError
from submarine_runtime.translation import _
from submarine_server.monitor.discovery import JobDiscovery
from submarine_server.monitor.job_table import JobTable, Row
from submarine_server.monitor.observer import PollObserver
from submarine_server.monitor.poll import Poll, PollResult, problem_text
from submarine_server.monitor.rows import RowBuilder

if TYPE_CHECKING:
    from submarine_jobs.client import Session
    from submarine_server.service import JobService

log = logging.getLogger(__name__)

#: Seconds between two polls: minimum, maximum, and growth per poll without changes.
MIN_INTERVAL, MAX_INTERVAL, GROWTH = 1.0, 10.0, 1.3
#: Seconds after the start until the first poll if no page is opened.
FIRST_POLL = 5.0
#: Seconds between checks of the index, and of the newest months of the job root.
INDEX_INTERVAL, DISCOVERY_INTERVAL = 0.5, 60.0
#: Seconds between retries after an error.
RETRY = 5.0

OnChange = Callable[[Row], None]


class JobMonitor:
    """The monitor of a server; runs in its event loop.

    Parameters
    ----------
    on_change
        Called with the row of each job that is new or has another state.
    """

    def __init__(self, service: JobService, on_change: OnChange | None = None) -> None:
        self.table = JobTable()
        self.observer = PollObserver()
        self._service = service
        self._on_change = on_change
        self._viewers = 0
        self._viewed = asyncio.Event()
        self._poll_requested = asyncio.Event()
        self._index_lock = asyncio.Lock()
        self._tasks: list[asyncio.Task[None]] = []
        #: Number of polls.
        self.polls = 0

    def start(self) -> None:
        """Start; needs a running event loop."""
        self._tasks.append(asyncio.get_running_loop().create_task(self._run()))

    async def close(self) -> None:
        """Stop, and release waiting threads."""
        self.observer.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @contextlib.contextmanager
    def keep_polling(self) -> Iterator[None]:
        """Poll while this context manager is open."""
        self._viewers += 1
        self._viewed.set()
        self.poll_soon()
        try:
            yield
        finally:
            self._viewers -= 1
            if not self._viewers:
                self._viewed.clear()

    def poll_soon(self) -> None:
        """Poll as soon as possible, and often afterwards."""
        self._poll_requested.set()

    async def _run(self) -> None:
        while True:
            await self._watch(await self._session())

    async def _wait_for_first_poll(self) -> None:
        """Wait for the first page with a timeout, after the list from the index is available."""
        await self.table.wait(0)
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._viewed.wait(), FIRST_POLL)

    async def _watch(self, session: Session) -> None:
        """Monitor with this session; without a cluster, until one is configured."""
        rows = RowBuilder(session.store, self._service.details.visible_origin, session.user)
        poll = Poll(lambda profile: self._open(session, profile))
        self.table.reset()
        jobs = (
            lambda: self._watch_index(rows),
            lambda: self._poll_repeatedly(rows, poll),
            lambda: self._discover(session),
            lambda: _deliver_tokens(session),
        )
        tasks = [asyncio.get_running_loop().create_task(self._repeat(job)) for job in jobs]
        try:
            if session.profile.backend is not None:
                await asyncio.Event().wait()  # forever
            while (await self._session()).profile.backend is None:
                await asyncio.sleep(RETRY)
                await self._viewed.wait()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _repeat(self, job: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Repeat ``job`` forever and log its errors."""
        while True:
            try:
                await job()
            except (SubmarineError, sqlite3.Error) as error:
                log.warning("job monitor: %s", error)
            except Exception:
                log.exception("the job monitor failed")
            await asyncio.sleep(RETRY)

    def _open(self, session: Session, profile: str) -> Session:
        return session if profile == session.profile.name else self._service.open_session(profile)

    async def _session(self) -> Session:
        """Return the server's session as soon as the configuration is valid."""
        while True:
            try:
                return await self._service.session()
            except (SubmarineError, OSError) as error:
                self.table.set_problem(
                    error.message if isinstance(error, SubmarineError) else str(error)
                )
                self.table.update([])
            await asyncio.sleep(RETRY)

    async def _watch_index(self, rows: RowBuilder) -> None:
        while True:
            if rows.index.may_have_changed:
                await self._read_index(rows)
            await asyncio.sleep(INDEX_INTERVAL)
            await self._viewed.wait()

    async def _read_index(self, rows: RowBuilder) -> None:
        """Update the table from the index; poll soon if a job has changed."""
        async with self._index_lock:
            changes, new_rows = await in_thread(rows.from_index)
            if changes.whole:
                self.table.reset()
            changed = self.table.update(new_rows, total=changes.total)
        if changes.changed_jobs:
            self.poll_soon()
            self._notify([row for row in changed if row["job_id"] in changes.changed_jobs])

    async def _poll_repeatedly(self, rows: RowBuilder, poll: Poll) -> None:
        pause = MIN_INTERVAL
        await self._wait_for_first_poll()
        while True:
            self._poll_requested.clear()
            began = time.monotonic()
            changed = await self._poll(rows, poll)
            pause = MIN_INTERVAL if changed else min(pause * GROWTH, MAX_INTERVAL)
            await asyncio.sleep(MIN_INTERVAL)
            with contextlib.suppress(asyncio.TimeoutError):
                left = max(0.0, pause - (time.monotonic() - began))
                await asyncio.wait_for(self._poll_requested.wait(), left)
                pause = MIN_INTERVAL
            await self._viewed.wait()

    async def _poll(self, rows: RowBuilder, poll: Poll) -> bool:
        """Poll all active jobs; return whether a state has changed."""
        await self._read_index(rows)
        displayed = self.observer.begin()
        result = PollResult()
        try:
            result = await in_thread(lambda: poll.run(rows.index.active(), displayed))
            self.polls += 1
        except Exception as error:
            result.failed = dict.fromkeys(
                displayed, ClusterError(_("The server failed: {error}.").format(error=error))
            )
            raise
        finally:
            self.observer.finish(result.observations, result.failed)
        async with self._index_lock:
            changed = self.table.update(await in_thread(lambda: rows.from_poll(result)))
        self.table.set_problem(problem_text(result.problem))
        self._notify(changed)
        return bool(changed)

    def _notify(self, changed: list[Row]) -> None:
        if self._on_change is not None:
            for row in changed:
                self._on_change(row)

    async def _discover(self, session: Session) -> None:
        discovery = JobDiscovery()
        await self._wait_for_first_poll()
        while True:
            more = False
            try:
                more = await discovery.step(session)
            except ClusterError as error:  # the poll reports the same problem in the table
                log.info("the job root cannot be searched: %s", error)
            await asyncio.sleep(0.2 if more else DISCOVERY_INTERVAL)
            await self._viewed.wait()


async def _deliver_tokens(session: Session) -> None:
    """Deliver fresh credentials to running jobs, whether or not a page shows them."""
    while pause := await in_thread(session.token_deliveries.keep_unfinished):
        await asyncio.sleep(pause)
    await asyncio.Event().wait()  # forever: nothing is delivered on this cluster


SCHEMA = "https://events.jupyter-submarine.org/job_changed/v1"


def event_publisher(event_logger: Any) -> Callable[[Row], None] | None:
    """Return a function that emits an event for a row; None if the server has no event logger."""
    if event_logger is None:
        return None

    def publish(row: Row) -> None:
        if SCHEMA not in event_logger.schemas:
            return
        try:
            event_logger.emit(
                schema_id=SCHEMA, data={"job_id": row["job_id"], "state": row["state"]}
            )
        except Exception:  # listeners and schemas of other extensions must not stop the monitor
            log.exception("the event of a change of job %s was not sent", row["job_id"])

    return publish
