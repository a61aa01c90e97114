"""TensorBoard processes: one per set of jobs, limited in number, stopped when idle."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import deque
from collections.abc import AsyncIterator
from typing import Any

from traitlets import Float, Int
from traitlets.config import LoggingConfigurable

from submarine_jobs.concurrency import in_thread
from submarine_jobs.errors import SubmarineError
from submarine_jobs.tensorboards import (
    MAX_BYTES,
    TensorBoardInstance,
    remove_stale,
    require_tensorboard,
    scratch_parent,
)
from submarine_runtime.translation import _
from submarine_server.base import ApiError
from submarine_server.service import JobService

SETTING = "submarine_tensorboards"
Key = tuple[str, ...]
#: A process that ends unexpectedly this often within these seconds is not restarted.
MAX_RESTARTS, RESTART_PERIOD = 3, 60.0
#: Seconds without requests before a process may be stopped in favor of another one.
MIN_IDLE = 60.0


class _Entry:
    """A TensorBoard process, running or starting."""

    def __init__(self, starting: asyncio.Future[TensorBoardInstance]) -> None:
        self.starting = starting
        self.last_used = time.monotonic()
        self.requests = 0
        self.starts: deque[float] = deque(maxlen=MAX_RESTARTS)


class TensorBoards(LoggingConfigurable):
    """TensorBoard processes of one server; used in its event loop."""

    idle_seconds = Float(600.0, help="Seconds without a request after which a process stops.").tag(
        config=True
    )
    most = Int(6, help="Maximum number of processes; each needs 100 MB of memory.").tag(config=True)
    max_bytes = Int(
        MAX_BYTES, help="Maximum bytes of event files of one process on this disk."
    ).tag(config=True)

    def __init__(self, service: JobService, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._service = service
        self._instances: dict[Key, _Entry] = {}
        self._culling: asyncio.Task[None] | None = None
        self._closed = False

    @contextlib.asynccontextmanager
    async def open_instance(self, key: Key) -> AsyncIterator[TensorBoardInstance]:
        """Start the TensorBoard of a set of jobs if necessary; keep it while the context is open.

        Raises
        ------
        JobNotFoundError
            If one of the jobs does not exist.
        SubmarineError, ApiError
            If it cannot be started.
        """
        if self._closed:
            raise ApiError(409, _("The server is stopping."))
        if self._culling is None:
            self._culling = asyncio.ensure_future(self._cull())
        instance = self._instances.get(key)
        if instance is None:
            instance = self._instances[key] = _Entry(asyncio.ensure_future(self._start(key)))
            instance.starts.append(time.monotonic())
            instance.starting.add_done_callback(lambda _unused: self._drop_failed(key))
        elif instance.starting.done() and not instance.starting.result().process.alive:
            self._restart(instance)
        instance.requests += 1
        try:
            yield await asyncio.shield(instance.starting)
        finally:
            instance.requests -= 1
            instance.last_used = time.monotonic()

    async def close(self) -> None:
        """Stop all processes."""
        self._closed = True
        if self._culling is not None:
            self._culling.cancel()
        await asyncio.gather(
            *(self._end(key) for key in list(self._instances)), return_exceptions=True
        )

    async def _start(self, key: Key) -> TensorBoardInstance:
        jobs = await asyncio.gather(*(self._service.job(job_id) for job_id in key))
        require_tensorboard()
        await self._evict(key)
        session = await self._service.session()
        state_dir = session.profile.state_dir

        def start() -> TensorBoardInstance:
            instance = TensorBoardInstance(
                jobs, state_dir, on_socket=True, max_bytes=self.max_bytes
            )
            try:
                instance.start()
            except BaseException:
                instance.close()
                raise
            return instance

        instance = await in_thread(start)
        if self._closed:
            await in_thread(instance.close)
            raise ApiError(409, _("The server is stopping."))
        self.log.info("TensorBoard of %s: process %s", ", ".join(key), instance.process.pid)
        return instance

    def _restart(self, instance: _Entry) -> None:
        """Restart a process that ended unexpectedly, unless this happens repeatedly."""
        now = time.monotonic()
        if len(instance.starts) == MAX_RESTARTS and now - instance.starts[0] < RESTART_PERIOD:
            raise ApiError(
                409,
                _("TensorBoard has ended {max_restarts} times within a minute.").format(
                    max_restarts=MAX_RESTARTS
                ),
                _("Try again in a minute. The server's log has its last output."),
            )
        tensorboard = instance.starting.result()
        self.log.warning(
            "TensorBoard ended unexpectedly: %s", tensorboard.process.last_log_line() or "no output"
        )
        instance.starts.append(now)

        async def restart() -> TensorBoardInstance:
            try:
                await in_thread(tensorboard.start)
            except SubmarineError as error:
                self.log.warning("TensorBoard was not started again: %s", error)
            return tensorboard

        instance.starting = asyncio.ensure_future(restart())

    def _drop_failed(self, key: Key) -> None:
        instance = self._instances.get(key)
        if instance is not None and instance.starting.done():
            failed = instance.starting.cancelled() or instance.starting.exception() is not None
            if failed:
                del self._instances[key]

    async def _evict(self, key: Key) -> None:
        """Stop the least recently used idle process if there are too many."""
        while len(self._instances) > max(1, self.most):
            limit = time.monotonic() - MIN_IDLE
            idle = [
                (instance.last_used, other)
                for other, instance in self._instances.items()
                if other != key and not instance.requests and instance.last_used < limit
            ]
            if not idle:
                raise ApiError(
                    409,
                    _("{most} TensorBoards are in use already.").format(most=self.most),
                    _("Close one and try again in a minute (TensorBoards.most sets their number)."),
                )
            await self._end(min(idle)[1])

    async def _end(self, key: Key) -> None:
        instance = self._instances.pop(key, None)
        if instance is None:
            return
        with contextlib.suppress(Exception):
            tensorboard = await instance.starting
            await in_thread(tensorboard.close)
            self.log.info("TensorBoard of %s has ended", ", ".join(key))

    async def _cull(self) -> None:
        while True:
            await asyncio.sleep(min(15.0, max(0.1, self.idle_seconds / 4)))
            limit = time.monotonic() - self.idle_seconds
            for key, instance in list(self._instances.items()):
                if (
                    instance.starting.done()
                    and not instance.requests
                    and instance.last_used < limit
                ):
                    await self._end(key)


def attach(settings: dict[str, Any], service: JobService) -> None:
    """Create the server's TensorBoards; remove files of earlier servers."""
    boards = TensorBoards(service, config=settings.get("config"))
    settings[SETTING] = boards
    service.on_close(boards.close)

    def remove_scratch() -> None:
        with contextlib.suppress(SubmarineError, OSError):
            remove_stale(scratch_parent(service.open_session().profile.state_dir))

    threading.Thread(target=remove_scratch, name="tensorboard-scratch", daemon=True).start()
