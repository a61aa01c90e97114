"""Logs of a job for one connection: each byte once and in order, at the speed of the client.

The feed keeps a position for each log and no data. Data comes from the buffer of ``GrowingLog`` or
is read by offset, so that a lost connection to the job, its end or a slow client loses no byte. If
a client falls too far behind, the feed sends ``skip`` and continues near the end.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from submarine_jobs.errors import SubmarineError, UsageError
from submarine_jobs.logs import check_log_names
from submarine_jobs.model import MAX_MERGED_TASKS
from submarine_runtime.protocol import LogCursor, LogKey, parse_log_key
from submarine_runtime.translation import _
from submarine_server.channel.feed import ChannelServices, Credit, Feed, Send, int_in, job_id_in
from submarine_server.logs import ALL_TASKS, GrowingLog, LiveLogs, LogReader, follow, unfollow

log = logging.getLogger(__name__)

#: Bytes of one message, from the buffer and from a read.
LIVE_PIECE, READ_PIECE = 64 << 10, 256 << 10
#: Credit to wait for before a message is sent.
MIN_CREDIT = 16 << 10
#: Additional bytes by which a client may fall behind before data is skipped; bytes before the end
#: at which it continues.
MAX_BEHIND, RESUME_BEHIND = 8 << 20, 256 << 10
#: Seconds between reads of missing bytes: first, maximum; and the time after which they are skipped
#: if the job is running and has newer bytes.
RETRY, MAX_RETRY, GIVE_UP = 0.5, 10.0, 60.0


class LogFeed(Feed):
    """``{"kind": "log", "job", "tasks", "at", "tail"}``."""

    kind = "log"

    def __init__(
        self, services: ChannelServices, request: Mapping[str, Any], send: Send, credit: Credit
    ) -> None:
        super().__init__(services, request, send, credit)
        self._id = job_id_in(request)
        log_request = LogRequest.of(request)
        self.tasks: Sequence[str] = log_request.tasks
        self.tail, self.resumes = log_request.tail, bool(log_request.at)
        self._start_offsets = StartOffsets(log_request)
        self._cursor = LogCursor()
        self._grown: dict[LogKey, None] = {}
        #: Logs without their next bytes: start time of the gap, and timer of the next attempt.
        self._missing: dict[LogKey, tuple[float, asyncio.TimerHandle]] = {}
        self._event = asyncio.Event()
        self._reported_delay: float | None = None
        #: Smallest backlog of the client since data was last skipped.
        self._min_behind = 1 << 62

    def log_grown(self, key: LogKey) -> None:
        """See ``Follower``."""
        if self._start_offsets.wants(key.task) and key not in self._missing:
            self._grown[key] = None
            self._event.set()

    def state_changed(self) -> None:
        """See ``Follower``."""
        self._event.set()

    async def run(self) -> None:
        """See ``Feed``."""
        service = self.services.service
        job = follow(service, self._id, self)
        try:
            for key in list(job.logs):
                self.log_grown(key)
            await self._send_all(job)
        finally:
            unfollow(service, self._id, job, self)
            for _unused, timer in self._missing.values():
                timer.cancel()

    async def _send_all(self, job: LiveLogs) -> None:
        while True:
            self._event.clear()
            if job.failure is not None:
                raise job.failure
            await self._report_delay(job)
            if self._grown:
                key = next(iter(self._grown))
                del self._grown[key]
                await self._send_next(job, key)
            elif job.ended and not self._missing:
                return
            else:
                await self._event.wait()

    async def _report_delay(self, job: LiveLogs) -> None:
        """Send the delay of the data when it changes; None for a live connection."""
        now = None if job.behind is None else round(job.behind, 1)
        if now != self._reported_delay:
            self._reported_delay = now
            await self.send({"type": "behind", "seconds": now})

    async def _send_next(self, job: LiveLogs, key: LogKey) -> None:
        """Send the next piece of one log; the rest waits for its turn."""
        known = job.logs[key]
        if key not in self._cursor:
            first = self._start_offsets.of(key, job.logs, job.ready)
            if first is None:
                return
            self._cursor.move(key, first)
        if not self._cursor.gap(key, known.end):
            return
        await self._wait_for_credit(job, key, known)
        begin = self._cursor.of(key)
        left, allowed = known.end - begin, self.credit.left
        text = known.encoded(begin) if left <= allowed else ""
        if text:
            await self._send(key, begin, left, text)
            return
        size = min(left, allowed)
        data: bytes | None = known.kept(begin, min(size, LIVE_PIECE))
        if not data and job.reader is not None:
            data = await self._read(job.reader, key, begin, min(size, READ_PIECE))
        if data is None:
            self._retry_later(key)
            return
        if not data:
            await self._handle_missing(job, key, known)
            return
        await self._send(key, begin, len(data), base64.b64encode(data).decode("ascii"))
        if self._cursor.gap(key, known.end):
            self._grown[key] = None

    async def _send(self, key: LogKey, begin: int, size: int, text: str) -> None:
        self._missing.pop(key, None)
        self._cursor.move(key, begin + size)
        self.credit.spend(size)
        await self.send({"type": "log", **key._asdict(), "offset": begin, "data": text})

    async def _wait_for_credit(self, job: LiveLogs, key: LogKey, known: GrowingLog) -> None:
        """Wait for credit; skip data if the client fell too far behind meanwhile."""
        worth = min(MIN_CREDIT, self._cursor.gap(key, known.end))
        if self.credit.left >= worth:
            return
        self._min_behind = min(self._min_behind, self._behind(job))
        await self.credit.wait(worth)
        if job.ended or self._behind(job) - self._min_behind <= MAX_BEHIND:
            return
        for name in self._cursor.keys:
            end = job.logs[name].end
            if self._cursor.gap(name, end) > RESUME_BEHIND:
                await self._skip(name, job.logs[name].line_after(end - RESUME_BEHIND))
        self._min_behind = self._behind(job)

    def _behind(self, job: LiveLogs) -> int:
        """Number of bytes that were not sent yet."""
        return sum(self._cursor.gap(key, job.logs[key].end) for key in self._cursor.keys)

    async def _skip(self, key: LogKey, to: int) -> None:
        begin = self._cursor.of(key)
        self._cursor.move(key, to)
        await self.send({"type": "skip", **key._asdict(), "offset": begin, "to": to})

    async def _read(self, reader: LogReader, key: LogKey, begin: int, size: int) -> bytes | None:
        """Read bytes by offset; empty if there are none, None if they cannot be read now."""
        try:
            chunk, _ = await self.services.service.call(reader.read, key, begin, size)
        except FileNotFoundError:
            return b""
        except (SubmarineError, TimeoutError) as error:
            log.debug("reading %s of %s: %s", key, self._id, error)
            return None
        return chunk.data if chunk.offset == begin else b""

    async def _handle_missing(self, job: LiveLogs, key: LogKey, known: GrowingLog) -> None:
        """Retry later, or skip bytes that will not come: their container may have died."""
        since = self._missing[key][0] if key in self._missing else time.monotonic()
        given_up = time.monotonic() - since > GIVE_UP and job.behind is None
        newer = known.end if job.ended else known.kept_from
        if job.ended or (given_up and self._cursor.of(key) < newer < known.end):
            self._missing.pop(key, None)
            await self._skip(key, newer)
            self.log_grown(key)
        else:
            self._retry_later(key)

    def _retry_later(self, key: LogKey) -> None:
        now = time.monotonic()
        since = self._missing[key][0] if key in self._missing else now
        pause = min(MAX_RETRY, max(RETRY, (now - since) / 2))
        timer = asyncio.get_running_loop().call_later(pause, self._retry, key)
        self._missing[key] = (since, timer)

    def _retry(self, key: LogKey) -> None:
        self._grown[key] = None
        self._event.set()


#: Maximum number of positions in a request, and largest offset.
MAX_AT, MAX_OFFSET = 4096, (1 << 53) - 1
MAX_TAIL = 64 << 20
#: Logs found within these seconds after the first ones are not new.
LATE = 2.0
#: A new log is sent from the start, despite ``tail``, if at most these bytes are missing.
MAX_NEW = 8 << 20


@dataclass(frozen=True)
class LogRequest:
    """A validated request for logs."""

    tasks: tuple[str, ...]
    at: Mapping[LogKey, int]
    tail: int | None

    @staticmethod
    def of(request: Mapping[str, Any]) -> LogRequest:
        """Validate the client's message.

        Raises
        ------
        UsageError
            If it is invalid.
        """
        tail = None if request.get("tail") is None else int_in(request, "tail", 0, MAX_TAIL)
        return LogRequest(_tasks(request.get("tasks")), _at(request.get("at")), tail)


def _tasks(names: Any) -> tuple[str, ...]:
    valid = isinstance(names, list) and 0 < len(names) <= MAX_MERGED_TASKS
    if not valid or not all(isinstance(name, str) for name in names):
        raise UsageError(
            _("`tasks` must be a list of 1 to {max_merged_tasks} names.").format(
                max_merged_tasks=MAX_MERGED_TASKS
            ),
            _('Give ["*"] for all tasks.'),
        )
    for name in names:
        if name != ALL_TASKS:
            check_log_names(name, None)
    return tuple(dict.fromkeys(names))


def _at(positions: Any) -> dict[LogKey, int]:
    if positions is None:
        return {}
    if not isinstance(positions, dict) or len(positions) > MAX_AT:
        raise UsageError(
            _("`at` must be an object of at most {max_at} logs.").format(max_at=MAX_AT)
        )
    found = {}
    for text, offset in positions.items():
        key = parse_log_key(text)
        valid = isinstance(offset, int) and not isinstance(offset, bool)
        if key is None or not text.isprintable() or not valid or not 0 <= offset <= MAX_OFFSET:
            raise UsageError(
                _("`at` contains {text!r}, which is not a position in a log.").format(
                    text=text[:60]
                ),
                _('One looks like "worker:0/e1-a1/stdout": 17.'),
            )
        found[key] = offset
    return found


class StartOffsets:
    """Start offsets of logs for one connection.

    A log in ``at`` continues at its position. If the client has read another attempt of the task,
    newer logs are sent from the start. Other logs start ``tail`` bytes before their end, in the
    newest attempt only. Without ``tail``, everything is sent.
    """

    def __init__(self, log_request: LogRequest) -> None:
        self._log_request = log_request
        self._every = ALL_TASKS in log_request.tasks
        #: Oldest attempt of each task that the client has read.
        self._oldest_read: dict[str, tuple[int, int]] = {}
        #: Newest attempt of each task that was started for this connection.
        self._newest_started: dict[str, tuple[int, int]] = {}
        for key in log_request.at:
            attempt = key.order
            self._oldest_read[key.task] = min(self._oldest_read.get(key.task, attempt), attempt)

    def wants(self, task: str) -> bool:
        """Return whether logs of this task were requested."""
        return self._every or task in self._log_request.tasks

    def of(self, key: LogKey, logs: Mapping[LogKey, GrowingLog], ready: float | None) -> int | None:
        """Return the offset of the first byte to send; None if the log is not sent.

        Parameters
        ----------
        logs
            All known logs of the job.
        ready
            Time at which the first log became known.
        """
        if key in self._log_request.at:
            return self._log_request.at[key]
        attempt, tail, known = key.order, self._log_request.tail, logs[key]
        if key.task in self._oldest_read:
            return 0 if attempt >= self._oldest_read[key.task] else None
        if tail is None:
            return 0
        begun = self._newest_started.get(key.task)
        newest = max(other.order for other in logs if other.task == key.task)
        if begun is None and attempt < newest:
            return None
        if begun is not None and attempt < begun:
            return None
        self._newest_started[key.task] = max(attempt, begun or attempt)
        late = ready is not None and known.since > ready + LATE
        new = late and (known.first or 0) <= MAX_NEW
        if new or (begun is not None and attempt > begun):
            return 0
        return max(0, known.end - tail)
