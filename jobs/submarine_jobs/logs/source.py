"""Follow the logs of a job: from its live stream, and from the uploaded segments without one.

A source has one connection to the job, shared by all followers. While the live stream is down,
uploaded logs are listed and the connection is retried. Followers are notified of grown logs and
read the bytes at their own speed (``delivery``). Following ends with the last follower. Command
line, magics and Zeppelin use a source through ``following``, the server for its pages.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Protocol

from submarine_jobs.access import StreamBrokenError
from submarine_jobs.errors import NoAccessError, SubmarineError
from submarine_jobs.logs.growing_log import GrowingLog
from submarine_jobs.logs.lengths import ALL, ALL_TASKS, LogStatus, list_shipped, log_status
from submarine_jobs.logs.reader import LogReader
from submarine_runtime.protocol import LogCursor, LogKey, read_log_line
from submarine_runtime.translation import _

log = logging.getLogger(__name__)

#: Seconds between attempts without a live stream: minimum and maximum, growing by half. The second
#: maximum is for a source that also asks the cluster each time.
MIN_PAUSE, MAX_PAUSE, MAX_THOROUGH_PAUSE = 0.5, 3.0, 10.0
#: Seconds between calls to the cluster: while data arrives, and without.
CLUSTER_PAUSE, CLUSTER_PAUSE_BEHIND = 30.0, 10.0
#: Bytes requested of each log when a stream starts: for one task, for several.
TAIL_ONE, TAIL_MANY = 256 << 10, 32 << 10
#: Buffered bytes: of all logs of a job; minimum and maximum per log.
MAX_KEPT, MIN_KEPT_PER_LOG, MAX_KEPT_PER_LOG = 8 << 20, 16 << 10, 512 << 10
#: Maximum number of followed logs of a job.
MAX_LOGS = 4096
#: Seconds after the start of a new attempt at which the end of older logs is checked, which their
#: container may not have sent.
END_CHECKS = (2.0, 5.0, 15.0, 40.0)

FAILURES = (SubmarineError, StreamBrokenError, OSError, ValueError, KeyError, TypeError)


#: Runs a blocking function, the first argument, in a thread.
Call = Callable[..., Awaitable[Any]]


class LogSource:
    """The followed logs of one job; used in one event loop.

    Parameters
    ----------
    open_reader
        Returns the reader of the job's logs; blocks.
    thorough
        Ask the cluster for the end of the job after each interruption, and then list all attempts.
        A server has many sources and polls the cluster anyway.
    """

    def __init__(
        self, open_reader: Callable[[], LogReader], call: Call, *, thorough: bool = False
    ) -> None:
        self._open_reader, self._call, self._thorough = open_reader, call, thorough
        self._followers = Followers()
        self._streamed_tasks: frozenset[str] = frozenset()
        self._main_task: asyncio.Task[None] | None = None
        self._stream_task: asyncio.Task[bool] | None = None
        self._helper_tasks: set[asyncio.Task[None]] = set()
        self.logs: dict[LogKey, GrowingLog] = {}
        self._ends = LogCursor()
        self.reader: LogReader | None = None
        #: Time at which the first log became known; logs that appear later are new.
        self.ready: float | None = None
        #: Whether all lengths are final.
        self.ended = False
        self.failure: SubmarineError | None = None
        #: Why the last check of the uploaded logs or of the cluster failed.
        self.trouble: SubmarineError | None = None
        #: Seconds by which uploaded logs are behind while there is no live stream.
        self.behind: float | None = None
        self._last_data = time.monotonic()
        #: Whether the job has published an address.
        self._has_address = False

    def add(self, follower: Follower) -> None:
        """Add a follower; the first one starts following."""
        self._followers.add(follower)
        if self._main_task is None:
            self._main_task = asyncio.get_running_loop().create_task(self._run())
        elif self._stream_task is not None:
            if (
                ALL_TASKS not in self._streamed_tasks
                and not self._followers.tasks <= self._streamed_tasks
            ):
                self._stream_task.cancel()  # restart with more tasks
            if needs_history(follower):
                self._start_helper(self._list_earlier())

    def remove(self, follower: Follower) -> bool:
        """Remove a follower; return whether it was the last one, and then stop following."""
        self._followers.discard(follower)
        if self._followers:
            return False
        for task in [self._main_task, self._stream_task, *self._helper_tasks]:
            if task is not None:
                task.cancel()
        return True

    async def _run(self) -> None:
        try:
            self.reader = await self._call(self._open_reader)
            await self._follow(self.reader)
        except SubmarineError as error:
            self.failure = error
        except Exception:  # unexpected: report it, so that no client waits forever
            log.exception("following a log failed")
            self.failure = SubmarineError(_("The log cannot be followed: an internal error."))
        self._followers.state_changed()

    async def _follow(self, reader: LogReader) -> None:
        """Read the live stream, or list uploaded logs, until the job has ended."""
        pause, last_check = MIN_PAUSE, time.monotonic()
        longest = MAX_THOROUGH_PAUSE if self._thorough else MAX_PAUSE
        while not self.ended:
            self._stream_task = asyncio.get_running_loop().create_task(self._stream(reader))
            try:
                received = await self._stream_task
            except asyncio.CancelledError:
                if self._main_task is None or self._main_task.cancelling():
                    raise
                continue  # restart with more tasks
            finally:
                self._stream_task = None
            silence = CLUSTER_PAUSE if self.behind is None else CLUSTER_PAUSE_BEHIND
            check_cluster = self._thorough or time.monotonic() - last_check > silence
            last_check = time.monotonic() if check_cluster else last_check
            try:
                found = await self._call(
                    log_status,
                    reader,
                    self._followers.tasks,
                    list(self.logs),
                    history=self._thorough or self._followers.history,
                    check_cluster=check_cluster,
                )
                self._apply_status(found, received=received)
            except NoAccessError:
                raise
            except (SubmarineError, TimeoutError, FileNotFoundError) as error:
                log.debug("checking a log: %s", error)
                self.trouble = error if isinstance(error, SubmarineError) else None
                self.behind = time.monotonic() - self._last_data
                self._followers.state_changed()
            pause = MIN_PAUSE if received else min(pause * 1.5, longest)
            if not self.ended:
                await asyncio.sleep(pause)

    def _apply_status(self, found: LogStatus, *, received: bool) -> None:
        self._add(found.lengths)
        self.ready = self.ready or time.monotonic()
        self.ended, self.trouble = found.ended, found.trouble
        # Do not report a delay at once: the stream may come back.
        if found.ended or not self._has_address:
            self.behind = None
        elif not received:
            silent = time.monotonic() - self._last_data
            self.behind = silent if found.behind is None else found.behind
        self._followers.state_changed()

    async def _stream(self, reader: LogReader) -> bool:
        """Read the live stream until it ends or fails; return whether anything was received."""
        received = False
        try:
            client = await self._call(reader.client)
            self._has_address = client is not None or reader.no_token
            if client is None:
                return False
            self._streamed_tasks = self._followers.tasks
            many = len(self._streamed_tasks) > 1 or ALL_TASKS in self._streamed_tasks
            tail = TAIL_MANY if many else TAIL_ONE
            words = self._ends.query(sorted(self._streamed_tasks), tail)
            async with aclosing(client.stream(words)) as lines:
                async for line in lines:
                    self._last_data = time.monotonic()
                    if not received:
                        received = True
                        self._on_connected()
                    self._handle_line(line)
        except FAILURES as error:
            log.debug("a live log was interrupted: %s", error)
        finally:
            reader.invalidate()
        return received

    def _on_connected(self) -> None:
        self.ready = self.ready or time.monotonic()
        self.behind = self.trouble = None
        self._followers.state_changed()
        if self._followers.history:
            self._start_helper(self._list_earlier())

    def _handle_line(self, line: Mapping[str, Any]) -> None:
        found = read_log_line(line)
        known = self._log(found.key) if found is not None else None
        if found is None or known is None:
            return
        keep = max(MIN_KEPT_PER_LOG, min(MAX_KEPT_PER_LOG, MAX_KEPT // len(self.logs)))
        if known.add(found, keep):
            self._followers.log_grown(found.key)

    def _log(self, key: LogKey) -> GrowingLog | None:
        known = self.logs.get(key)
        if known is None and len(self.logs) < MAX_LOGS:
            known = self.logs[key] = GrowingLog(key, self._ends)
            older = [
                other for other in self.logs if other.task == key.task and other.order < key.order
            ]
            if older and self.ready is not None:
                self._start_helper(self._check_ends(older))
        return known

    def _start_helper(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._helper_tasks.add(task)
        task.add_done_callback(self._helper_tasks.discard)

    async def _list_earlier(self) -> None:
        """List the uploaded logs of earlier attempts."""
        if self.reader is not None:
            with contextlib.suppress(*FAILURES):
                found = await self._call(list_shipped, self.reader, self._followers.tasks)
                self._add(found)

    async def _check_ends(self, keys: Sequence[LogKey]) -> None:
        """Check the final lengths of ended attempts, which are uploaded later."""
        for pause in END_CHECKS:
            await asyncio.sleep(pause)
            if self.reader is None:
                continue
            with contextlib.suppress(*FAILURES):
                self._add(await self._call(self.reader.lengths, keys))

    def _add(self, lengths: Mapping[LogKey, int]) -> None:
        for key, length in lengths.items():
            known = self._log(key)
            if known is not None and known.grow(length):
                self._followers.log_grown(key)


#: Maximum number of task names in a request; for more tasks, all are requested.
MAX_NAMED_TASKS = 64


class Follower(Protocol):
    """A follower of logs: its tasks, its ``tail``, and whether it resumes from known positions.

    ``tail`` None means all bytes of all attempts.
    """

    tasks: Sequence[str]
    tail: int | None
    resumes: bool

    def log_grown(self, key: LogKey) -> None:
        """Notify that a log has grown; must not block."""

    def state_changed(self) -> None:
        """Notify that the live stream started or failed, or that the job has ended."""


class Followers:
    """All followers of one job."""

    def __init__(self) -> None:
        self._all: set[Follower] = set()

    def __len__(self) -> int:
        return len(self._all)

    def add(self, follower: Follower) -> None:
        """Add a follower."""
        self._all.add(follower)

    def discard(self, follower: Follower) -> None:
        """Remove a follower."""
        self._all.discard(follower)

    @property
    def tasks(self) -> frozenset[str]:
        """Tasks requested by any follower."""
        names = frozenset(name for follower in self._all for name in follower.tasks)
        return ALL if ALL_TASKS in names or len(names) > MAX_NAMED_TASKS else names

    @property
    def history(self) -> bool:
        """Whether any follower needs ended attempts."""
        return any(needs_history(follower) for follower in self._all)

    def log_grown(self, key: LogKey) -> None:
        """Notify all followers that a log has grown."""
        for follower in self._all:
            follower.log_grown(key)

    def state_changed(self) -> None:
        """Notify all followers of another change."""
        for follower in self._all:
            follower.state_changed()


def needs_history(follower: Follower) -> bool:
    """Return whether a follower may need bytes of ended attempts."""
    return follower.resumes or follower.tail is None
