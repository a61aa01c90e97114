"""The TensorBoards of this server: one process a set of jobs, at most so many, ended when idle.

Starts them when somebody asks and starts those again that have died. Speaks no HTTP.
"""

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
    Board,
    remove_stale,
    require_tensorboard,
    scratch_parent,
)
from submarine_server.base import ApiError
from submarine_server.service import Core

SETTING = "submarine_tensorboards"
Key = tuple[str, ...]
#: A TensorBoard that dies so often within so many seconds is not started again for a while.
DEATHS, WITHIN = 3, 60.0
#: One that was used so recently does not make room for another.
SPARED_SECONDS = 60.0


class _Open:
    """One TensorBoard, or the one that is being started."""

    def __init__(self, starting: asyncio.Future[Board]) -> None:
        self.starting = starting
        self.used = time.monotonic()
        self.requests = 0
        self.starts: deque[float] = deque(maxlen=DEATHS)


class TensorBoards(LoggingConfigurable):
    """All of one server; lives in its event loop."""

    idle_seconds = Float(600.0, help="Seconds without a request after which one is ended.").tag(
        config=True
    )
    most = Int(6, help="How many may run at once; one holds some 100 MB.").tag(config=True)
    max_bytes = Int(MAX_BYTES, help="Bytes of event files that one may hold on this disk.").tag(
        config=True
    )

    def __init__(self, core: Core, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._core = core
        self._open: dict[Key, _Open] = {}
        self._culling: asyncio.Task[None] | None = None
        self._closed = False

    @contextlib.asynccontextmanager
    async def board(self, key: Key) -> AsyncIterator[Board]:
        """The running TensorBoard of a set of jobs, kept for as long as it is held.

        Raises
        ------
        JobNotFoundError
            If one of the jobs does not exist; nothing was started.
        SubmarineError, ApiError
            If it cannot be started.
        """
        if self._closed:
            raise ApiError(409, "The server is stopping.")
        if self._culling is None:
            self._culling = asyncio.ensure_future(self._cull())
        entry = self._open.get(key)
        if entry is None:
            entry = self._open[key] = _Open(asyncio.ensure_future(self._start(key)))
            entry.starts.append(time.monotonic())
            entry.starting.add_done_callback(lambda _: self._drop_failed(key))
        elif entry.starting.done() and not entry.starting.result().process.alive:
            self._revive(entry)
        entry.requests += 1
        try:
            yield await asyncio.shield(entry.starting)
        finally:
            entry.requests -= 1
            entry.used = time.monotonic()

    async def close(self) -> None:
        """End all of them."""
        self._closed = True
        if self._culling is not None:
            self._culling.cancel()
        await asyncio.gather(*(self._end(key) for key in list(self._open)), return_exceptions=True)

    async def _start(self, key: Key) -> Board:
        jobs = await asyncio.gather(*(self._core.job(job_id) for job_id in key))
        require_tensorboard()
        await self._make_room(key)
        session = await self._core.session()
        state_dir = session.profile.state_dir

        def start() -> Board:
            board = Board(jobs, state_dir, on_socket=True, max_bytes=self.max_bytes)
            try:
                board.start()
            except BaseException:
                board.close()
                raise
            return board

        board = await in_thread(start)
        if self._closed:
            await in_thread(board.close)
            raise ApiError(409, "The server is stopping.")
        self.log.info("TensorBoard of %s: process %s", ", ".join(key), board.process.pid)
        return board

    def _revive(self, entry: _Open) -> None:
        """Start one again that has died, unless it does so all the time."""
        now = time.monotonic()
        if len(entry.starts) == DEATHS and now - entry.starts[0] < WITHIN:
            raise ApiError(
                409,
                f"TensorBoard has ended {DEATHS} times within a minute.",
                "Try again in a minute; what it said last is in the server's log.",
            )
        board = entry.starting.result()
        self.log.warning("TensorBoard died: %s", board.process.last_words() or "no last words")
        entry.starts.append(now)

        async def again() -> Board:
            try:
                await in_thread(board.start)
            except SubmarineError as error:
                self.log.warning("TensorBoard was not started again: %s", error)
            return board

        entry.starting = asyncio.ensure_future(again())

    def _drop_failed(self, key: Key) -> None:
        entry = self._open.get(key)
        if entry is not None and entry.starting.done():
            failed = entry.starting.cancelled() or entry.starting.exception() is not None
            if failed:
                del self._open[key]

    async def _make_room(self, key: Key) -> None:
        """End the one that nobody has used for longest, where there are too many."""
        while len(self._open) > max(1, self.most):
            limit = time.monotonic() - SPARED_SECONDS
            idle = [
                (entry.used, other)
                for other, entry in self._open.items()
                if other != key and not entry.requests and entry.used < limit
            ]
            if not idle:
                raise ApiError(
                    409,
                    f"{self.most} TensorBoards are in use already.",
                    "Close one and try again in a minute (TensorBoards.most sets their number).",
                )
            await self._end(min(idle)[1])

    async def _end(self, key: Key) -> None:
        entry = self._open.pop(key, None)
        if entry is None:
            return
        with contextlib.suppress(Exception):
            board = await entry.starting
            await in_thread(board.close)
            self.log.info("TensorBoard of %s has ended", ", ".join(key))

    async def _cull(self) -> None:
        while True:
            await asyncio.sleep(min(15.0, max(0.1, self.idle_seconds / 4)))
            limit = time.monotonic() - self.idle_seconds
            for key, entry in list(self._open.items()):
                if entry.starting.done() and not entry.requests and entry.used < limit:
                    await self._end(key)


def attach(settings: dict[str, Any], core: Core) -> None:
    """Make the server's TensorBoards; remove what an earlier server has left on this disk."""
    boards = TensorBoards(core, config=settings.get("config"))
    settings[SETTING] = boards
    core.on_close(boards.close)

    def tidy() -> None:
        with contextlib.suppress(SubmarineError, OSError):
            remove_stale(scratch_parent(core.session_now().profile.state_dir))

    threading.Thread(target=tidy, name="tensorboard-tidy", daemon=True).start()
