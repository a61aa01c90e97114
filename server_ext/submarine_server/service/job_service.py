"""The service behind the handlers: sessions, and blocking calls in threads.

Calls that may access the cluster go through ``JobService.call``, which limits their number and
their duration. Calls that access only the local disk go through ``JobService.call_local`` and are
never delayed by the cluster.
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

from submarine_jobs.client import Session
from submarine_jobs.concurrency import in_thread
from submarine_jobs.config import load_config
from submarine_jobs.errors import ClusterError, UsageError
from submarine_jobs.model import prepare_reader
from submarine_runtime.translation import _
from submarine_server.service.job_details import JobDetailsCache

if TYPE_CHECKING:
    from submarine_jobs.client import Job

T = TypeVar("T")

#: Concurrent calls to the cluster, and calls that may wait.
MAX_CALLS = 16
MAX_WAITING = 256
#: Default timeout of a call in seconds; the calls inside have shorter timeouts.
TIMEOUT = 30.0


class BusyError(ClusterError):
    """Too many calls are waiting for the cluster."""


class CallLimiter:
    """Run a limited number of blocking calls in threads.

    The threads are daemons: a cluster that does not respond does not delay the end of the server.
    After a timeout, a call keeps its slot until it ends, so that the number of threads stays
    bounded.
    """

    def __init__(self, limit: int, max_waiting: int = MAX_WAITING) -> None:
        self._free = asyncio.Semaphore(limit)
        self._max_waiting = max_waiting
        self._waiting = 0

    async def run(self, work: Callable[[], T], timeout: float) -> T:
        """Return the result of ``work``; ``timeout`` includes the time of waiting."""
        if self._waiting >= self._max_waiting:
            raise BusyError(
                _("{waiting} requests are already waiting for the cluster.").format(
                    waiting=self._waiting
                ),
                _("Try again in a minute."),
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
            task.exception()  # retrieve the exception, otherwise asyncio logs it


@dataclass
class _SharedCall:
    task: asyncio.Future[Any]
    since: float


class JobService:
    """Jobs of the server's user; one instance per server, used in its event loop.

    Parameters
    ----------
    profile
        Name of the configured profile; empty for the one in force.
    root
        Root directory of the server's file browser; None if it does not show local files.
    """

    def __init__(self, profile: str = "", root: Path | None = None) -> None:
        prepare_reader()
        self.profile = profile
        self.details = JobDetailsCache(root)
        self._cluster = CallLimiter(MAX_CALLS)
        self._local = CallLimiter(4)
        self._shared: dict[str, _SharedCall] = {}
        self._sessions: dict[str, Session] = {}
        self._opening = threading.Lock()
        self._closers: list[Callable[[], Awaitable[None]]] = []

    def open_session(self, profile: str = "") -> Session:
        """Return the session of a profile (default: the server's); blocks.

        The configuration is read again with each call while no cluster is configured.
        """
        name = profile or self.profile
        with self._opening:
            session = self._sessions.get(name)
            if session is None or session.profile.backend is None:
                session = Session(load_config({"profile": name or None}).profile)
                self._sessions[name] = session
            return session

    async def session(self) -> Session:
        """Return the server's session.

        Raises
        ------
        ConfigError
            If the configuration is invalid; the next call reads it again.
        """
        return await self.call_local(self.open_session)

    async def job(self, job_id: str, timeout: float = TIMEOUT) -> Job:
        """Return the job with this id; see ``find``."""
        return await self.call(self.find, job_id, timeout=timeout)

    def find(self, job_id: str) -> Job:
        """Find a job by its full id, in the local index or the job root; blocks.

        The profile with which the job was submitted is used.

        Raises
        ------
        JobNotFoundError
            If the job does not exist.
        """
        session = self.open_session()
        known = session.store.get(job_id)
        if known is not None and known.profile != session.profile.name:
            with contextlib.suppress(UsageError):  # the profile was removed: use the server's
                return self.open_session(known.profile).job(job_id)
        return session.job(job_id)

    async def call(
        self, function: Callable[..., T], *args: Any, timeout: float = TIMEOUT, **kwargs: Any
    ) -> T:
        """Run a function that may access the cluster in a thread.

        Raises
        ------
        TimeoutError
            If it takes too long. The thread continues until the function returns.
        """
        return await self._cluster.run(functools.partial(function, *args, **kwargs), timeout)

    async def call_local(
        self, function: Callable[..., T], *args: Any, timeout: float = TIMEOUT, **kwargs: Any
    ) -> T:
        """Run a function that accesses only the local disk in a thread."""
        return await self._local.run(functools.partial(function, *args, **kwargs), timeout)

    async def call_shared(self, key: str, make: Callable[[], Awaitable[T]], age: float) -> T:
        """Share the result of one call among callers with the same key for ``age`` seconds.

        Exceptions are raised in all waiting callers and are not kept.
        """
        entry = self._shared.get(key)
        if entry is None or (entry.task.done() and time.monotonic() - entry.since > age):
            entry = _SharedCall(asyncio.ensure_future(make()), time.monotonic())
            self._shared[key] = entry
            entry.task.add_done_callback(functools.partial(self._shared_done, key, entry))
            self._drop_old_results(age)
        return cast("T", await asyncio.shield(entry.task))

    def _shared_done(self, key: str, entry: _SharedCall, task: asyncio.Future[Any]) -> None:
        entry.since = time.monotonic()
        failed = task.cancelled() or task.exception() is not None
        if failed and self._shared.get(key) is entry:
            del self._shared[key]

    def _drop_old_results(self, age: float) -> None:
        """Remove results that are too old."""
        limit = time.monotonic() - max(age, 60.0)
        for key, entry in list(self._shared.items()):
            if entry.task.done() and entry.since < limit:
                del self._shared[key]

    def on_close(self, closer: Callable[[], Awaitable[None]]) -> None:
        """Register a coroutine function that is awaited when the server stops."""
        self._closers.append(closer)

    async def close(self) -> None:
        """Call the registered functions, each with a timeout."""
        for closer in reversed(self._closers):
            with contextlib.suppress(Exception):
                await asyncio.wait_for(closer(), 5.0)
        self._closers.clear()
