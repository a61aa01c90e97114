"""The core behind the server: its session, and blocking calls kept away from the event loop.

Every call that may touch the cluster goes through ``Core.call``, which bounds how many there are
and how long anybody waits; what only this machine knows goes through ``Core.here``, so that a
cluster that hangs never blocks it. Does not speak HTTP and knows no handler.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from submarine_jobs.concurrency import in_thread
from submarine_jobs.errors import ClusterError
from submarine_server.service.job_details import Abouts

if TYPE_CHECKING:
    from submarine_jobs.client import Job, Session

T = TypeVar("T")

#: Calls to the cluster that may be under way at once, and those that may wait for their turn.
WIDTH = 16
QUEUE = 256
#: Seconds that a caller waits for the cluster; single calls below have shorter limits of their own.
PATIENCE = 30.0


class BusyError(ClusterError):
    """Too many calls wait for the cluster already."""


class Lane:
    """So many blocking calls at once; whoever stops waiting leaves the call's thread behind.

    The threads are daemons: a cluster that does not answer never holds up the end of the server.
    A call that was left behind keeps its place until it ends, so their number stays bounded.
    """

    def __init__(self, width: int, queue: int = QUEUE) -> None:
        self._free = asyncio.Semaphore(width)
        self._queue = queue
        self._waiting = 0

    async def run(self, work: Callable[[], T], timeout: float) -> T:
        """The result of ``work``; TimeoutError after ``timeout`` seconds, turn included."""
        if self._waiting >= self._queue:
            raise BusyError(
                f"{self._waiting} requests wait for the cluster's answer already.",
                "Try again in a minute.",
            )
        async with asyncio.timeout(timeout):
            self._waiting += 1
            try:
                await self._free.acquire()
            finally:
                self._waiting -= 1
            task = asyncio.ensure_future(in_thread(work))
            task.add_done_callback(self._done)
            return await asyncio.shield(task)

    def _done(self, task: asyncio.Future[Any]) -> None:
        self._free.release()
        if not task.cancelled():
            task.exception()  # taken note of, though nobody may wait for it any more


@dataclass
class _Shared:
    task: asyncio.Future[Any]
    since: float


class Core:
    """What the handlers share; made once a server, lives in its event loop.

    Parameters
    ----------
    profile
        Name of the configured profile to use; empty: the one in force.
    root
        Directory that the server's file browser shows; None: none of this machine.
    """

    def __init__(self, profile: str = "", root: Path | None = None) -> None:
        self.profile = profile
        self.abouts = Abouts(root)
        self._cluster = Lane(WIDTH)
        self._here = Lane(4)
        self._shared: dict[str, _Shared] = {}
        self._sessions: dict[str, Session] = {}
        self._opening = threading.Lock()
        self._closers: list[Callable[[], Awaitable[None]]] = []

    def session_now(self, profile: str = "") -> Session:
        """The session of a profile (empty: the server's); blocks, so only in a call's thread.

        As long as no cluster is configured the configuration is read anew each time.
        """
        from submarine_jobs.client import Session
        from submarine_jobs.config import load_config

        name = profile or self.profile
        with self._opening:
            session = self._sessions.get(name)
            if session is None or session.profile.backend is None:
                session = Session(load_config({"profile": name or None}).profile)
                self._sessions[name] = session
            return session

    async def session(self) -> Session:
        """The server's session.

        Raises
        ------
        ConfigError
            If the configuration holds something impossible; it is read anew the next time.
        """
        return await self.here(self.session_now)

    async def job(self, job_id: str, timeout: float = PATIENCE) -> Job:
        """The job of that id; see ``find``."""
        return await self.call(self.find, job_id, timeout=timeout)

    def find(self, job_id: str) -> Job:
        """Find a job by its whole id, in this machine's index or the job root; blocks.

        A job that was submitted with another profile is found with that profile.

        Raises
        ------
        JobNotFoundError
            If there is none.
        """
        session = self.session_now()
        known = session.store.get(job_id)
        if known is not None and known.profile != session.profile.name:
            from submarine_jobs.errors import UsageError

            with contextlib.suppress(UsageError):  # the profile is gone: try the server's
                return self.session_now(known.profile).job(job_id)
        return session.job(job_id)

    async def call(
        self, function: Callable[..., T], *args: Any, timeout: float = PATIENCE, **kwargs: Any
    ) -> T:
        """Run ``function(*args, **kwargs)`` in a thread; for all that may touch the cluster.

        Raises
        ------
        TimeoutError
            If it takes too long; the thread ends when the call below it does.
        """
        return await self._cluster.run(functools.partial(function, *args, **kwargs), timeout)

    async def here(
        self, function: Callable[..., T], *args: Any, timeout: float = PATIENCE, **kwargs: Any
    ) -> T:
        """The same for what needs this machine's disk only and is never behind the cluster."""
        return await self._here.run(functools.partial(function, *args, **kwargs), timeout)

    async def shared(self, key: str, make: Callable[[], Awaitable[T]], age: float) -> T:
        """One call for all that ask for ``key`` at the same time, its result kept ``age`` seconds.

        An error is told to all that waited and not kept.
        """
        entry = self._shared.get(key)
        if entry is None or (entry.task.done() and time.monotonic() - entry.since > age):
            entry = _Shared(asyncio.ensure_future(make()), time.monotonic())
            self._shared[key] = entry
            entry.task.add_done_callback(functools.partial(self._settled, key, entry))
            self._forget(age)
        return cast("T", await asyncio.shield(entry.task))

    def _settled(self, key: str, entry: _Shared, task: asyncio.Future[Any]) -> None:
        entry.since = time.monotonic()
        failed = task.cancelled() or task.exception() is not None
        if failed and self._shared.get(key) is entry:
            del self._shared[key]

    def _forget(self, age: float) -> None:
        """Drop what nobody has asked for in a while."""
        limit = time.monotonic() - max(age, 60.0)
        for key, entry in list(self._shared.items()):
            if entry.task.done() and entry.since < limit:
                del self._shared[key]

    def on_close(self, closer: Callable[[], Awaitable[None]]) -> None:
        """Have ``closer`` awaited when the server stops."""
        self._closers.append(closer)

    async def close(self) -> None:
        """Stop what was started; each part gets a few seconds."""
        for closer in reversed(self._closers):
            with contextlib.suppress(Exception):
                await asyncio.wait_for(closer(), 5.0)
        self._closers.clear()
