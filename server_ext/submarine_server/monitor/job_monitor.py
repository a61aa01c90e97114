"""The one watcher of all jobs of a server: when to look, at what, and who is told.

While somebody looks: often after a change or a submit, seldom when all is quiet. While nobody does:
not at all, but for one look after the start. The index is read at the start, so that the first page
has its list at once. Jobs that a kernel of this machine submits are seen in
the index, which costs the cluster nothing. Does not follow single jobs (``displays``).
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
from submarine_jobs.model import hadoop_user
from submarine_server.monitor.discovery import Discovery
from submarine_server.monitor.job_table import Board, Row
from submarine_server.monitor.observer import SharedObserver
from submarine_server.monitor.poll import Poll, Seen, sentence
from submarine_server.monitor.rows import Rows

if TYPE_CHECKING:
    from submarine_jobs.client import Session
    from submarine_server.service import Core

log = logging.getLogger(__name__)

#: Seconds between two polls: at least, and at most; each quiet one makes it longer by ``LONGER``.
FASTEST, SLOWEST, LONGER = 1.0, 10.0, 1.3
#: Seconds after the start until the first look, where nobody comes before.
FIRST_LOOK = 5.0
#: Seconds between looks at the index's file, and at the newest months of the job root.
INDEX_EVERY, ROOT_EVERY = 0.5, 60.0
#: Seconds until a configuration that cannot be read is read again.
TRY_AGAIN = 5.0

Told = Callable[[Row], None]


class JobsWatch:
    """Watches; made once a server, lives in its event loop.

    Parameters
    ----------
    told
        Called with the row of each job that is new or has changed its state.
    """

    def __init__(self, core: Core, told: Told | None = None) -> None:
        self.board = Board()
        self.observer = SharedObserver()
        self._core = core
        self._told = told
        self._looking = 0
        self._somebody = asyncio.Event()
        self._hurry = asyncio.Event()
        self._reading = asyncio.Lock()
        self._tasks: list[asyncio.Task[None]] = []
        #: Polls so far.
        self.polls = 0

    def start(self) -> None:
        """Begin; needs a running event loop."""
        self._tasks.append(asyncio.get_running_loop().create_task(self._run()))

    async def close(self) -> None:
        """Stop, and let go whoever waits."""
        self.observer.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @contextlib.contextmanager
    def looking(self) -> Iterator[None]:
        """Somebody looks for as long as this is open."""
        self._looking += 1
        self._somebody.set()
        self.hurry()
        try:
            yield
        finally:
            self._looking -= 1
            if not self._looking:
                self._somebody.clear()

    def hurry(self) -> None:
        """Poll as soon as may be, and often for a while."""
        self._hurry.set()

    async def _run(self) -> None:
        while True:
            await self._watch(await self._session())

    async def _first_look(self) -> None:
        """Wait for the first who looks, not for long; and until the list of before is shown."""
        await self.board.wait(0)
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._somebody.wait(), FIRST_LOOK)

    async def _watch(self, session: Session) -> None:
        """Watch with this session, until a cluster is configured where it knows none."""
        rows = Rows(session.store, self._core.abouts.origin, hadoop_user(session.profile.user))
        poll = Poll(lambda profile: self._open(session, profile))
        self.board.begin_anew()
        jobs = (
            lambda: self._watch_index(rows),
            lambda: self._poll_on(rows, poll),
            lambda: self._discover(session),
        )
        tasks = [asyncio.get_running_loop().create_task(self._on(job)) for job in jobs]
        try:
            if session.profile.backend is not None:
                await asyncio.Event().wait()  # for ever
            while (await self._session()).profile.backend is None:
                await asyncio.sleep(TRY_AGAIN)
                await self._somebody.wait()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _on(self, job: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Do ``job`` for ever, whatever goes wrong."""
        while True:
            try:
                await job()
            except (SubmarineError, sqlite3.Error) as error:
                log.warning("the watcher of jobs: %s", error)
            except Exception:
                log.exception("the watcher of jobs has stumbled")
            await asyncio.sleep(TRY_AGAIN)

    def _open(self, session: Session, profile: str) -> Session:
        return session if profile == session.profile.name else self._core.session_now(profile)

    async def _session(self) -> Session:
        """The server's session, as soon as the configuration is right."""
        while True:
            try:
                return await self._core.session()
            except (SubmarineError, OSError) as error:
                self.board.say(error.message if isinstance(error, SubmarineError) else str(error))
                self.board.put([])
            await asyncio.sleep(TRY_AGAIN)

    async def _watch_index(self, rows: Rows) -> None:
        while True:
            if rows.known.changed:
                await self._read_index(rows)
            await asyncio.sleep(INDEX_EVERY)
            await self._somebody.wait()

    async def _read_index(self, rows: Rows) -> None:
        """Show what has changed in the index; a job that is new or has moved is worth a look."""
        async with self._reading:
            news, made = await in_thread(rows.from_index)
            if news.whole:
                self.board.begin_anew()
            moved = self.board.put(made, total=news.total)
        if news.moved:
            self.hurry()
            self._tell([row for row in moved if row["job_id"] in news.moved])

    async def _poll_on(self, rows: Rows, poll: Poll) -> None:
        pause = FASTEST
        await self._first_look()
        while True:
            self._hurry.clear()
            began = time.monotonic()
            moved = await self._poll(rows, poll)
            pause = FASTEST if moved else min(pause * LONGER, SLOWEST)
            await asyncio.sleep(FASTEST)
            with contextlib.suppress(asyncio.TimeoutError):
                left = max(0.0, pause - (time.monotonic() - began))
                await asyncio.wait_for(self._hurry.wait(), left)
                pause = FASTEST
            await self._somebody.wait()

    async def _poll(self, rows: Rows, poll: Poll) -> bool:
        """Look at all jobs that go on; whether one of them has changed its state."""
        await self._read_index(rows)
        shown = self.observer.begin()
        seen = Seen()
        try:
            seen = await in_thread(lambda: poll.look(rows.known.going_on(), shown))
            self.polls += 1
        except Exception as error:
            seen.failed = dict.fromkeys(shown, ClusterError(f"The server failed: {error}."))
            raise
        finally:
            self.observer.finish(seen.observations, seen.failed)
        async with self._reading:
            moved = self.board.put(await in_thread(lambda: rows.from_poll(seen)))
        self.board.say(sentence(seen.problem))
        self._tell(moved)
        return bool(moved)

    def _tell(self, moved: list[Row]) -> None:
        if self._told is not None:
            for row in moved:
                self._told(row)

    async def _discover(self, session: Session) -> None:
        discovery = Discovery()
        await self._first_look()
        while True:
            more = False
            try:
                more = await discovery.step(session)
            except ClusterError as error:  # the list of jobs says so where a poll finds it too
                log.info("the job root cannot be walked through: %s", error)
            await asyncio.sleep(0.2 if more else ROOT_EVERY)
            await self._somebody.wait()
