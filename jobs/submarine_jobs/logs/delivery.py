"""Deliver the bytes of a ``LogSource`` to one reader: each byte once, in order, at its speed.

A delivery has a cursor and no data. The reader takes the next log that has unread bytes, and reads
them from the buffer of ``GrowingLog`` or by offset, so that a lost connection to the job, its end
or a slow reader loses no byte. Bytes that cannot be read are requested again, and skipped when they
will not come.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence

from submarine_jobs.logs.growing_log import GrowingLog
from submarine_jobs.logs.lengths import ALL_TASKS
from submarine_jobs.logs.source import LogSource
from submarine_runtime.protocol import LogCursor, LogKey

#: Maximum bytes of one piece from the buffer.
LIVE_PIECE = 64 << 10
#: Seconds between reads of missing bytes: first, maximum; and the time after which they are skipped
#: if the job is running and has newer bytes.
RETRY, MAX_RETRY, GIVE_UP = 0.5, 10.0, 60.0
#: Logs found within these seconds after the first ones are not new.
LATE = 2.0
#: A new log is sent from the start, despite ``tail``, if at most these bytes are missing.
MAX_NEW = 8 << 20


class LogDelivery:
    """The position of one reader in the logs of a source; see ``Follower``.

    Parameters
    ----------
    source
        Calls ``log_grown`` and ``state_changed`` after ``open``.
    at
        Position of the reader; other logs begin as ``StartOffsets`` determines.
    """

    def __init__(
        self,
        source: LogSource,
        tasks: Sequence[str],
        at: Mapping[LogKey, int],
        tail: int | None,
        *,
        streamed: bool = False,
    ) -> None:
        self.source = source
        self.tasks, self.tail, self.resumes = tasks, tail, bool(at)
        self._start = StartOffsets(tasks, at, tail, streamed=streamed)
        self.cursor = LogCursor()
        self._grown: dict[LogKey, None] = {}
        #: Logs without their next bytes: start time of the gap, and timer of the next attempt.
        self._missing: dict[LogKey, tuple[float, asyncio.TimerHandle]] = {}
        self._event = asyncio.Event()

    def open(self) -> None:
        """Deliver all logs that the source knows."""
        for key in list(self.source.logs):
            self.log_grown(key)

    def close(self) -> None:
        """Cancel the timers."""
        for _unused, timer in self._missing.values():
            timer.cancel()

    def log_grown(self, key: LogKey) -> None:
        """See ``Follower``."""
        if self._start.wants(key.task) and key not in self._missing:
            self._grown[key] = None
            self._event.set()

    def state_changed(self) -> None:
        """See ``Follower``."""
        self._event.set()

    @property
    def complete(self) -> bool:
        """Whether all bytes of an ended job were delivered."""
        return self.source.ended and not self._missing

    async def wait(self) -> None:
        """Wait until a log has grown or the state of the source has changed since the last wait."""
        await self._event.wait()
        self._event.clear()

    def next_log(self) -> LogKey | None:
        """Return the next log with unread bytes; they begin at the cursor. None: there is none."""
        while self._grown:
            key = next(iter(self._grown))
            del self._grown[key]
            if key not in self.cursor:
                first = self._start.of(key, self.source.logs, self.source.ready)
                if first is None:
                    continue
                self.cursor.move(key, first)
            if self.unread(key):
                return key
        return None

    def unread(self, key: LogKey) -> int:
        """Return the number of unread bytes of a log."""
        return self.cursor.gap(key, self.source.logs[key].end)

    def delivered(self, key: LogKey) -> None:
        """Note that bytes were read and the cursor is behind them; the rest waits for its turn."""
        self._missing.pop(key, None)
        if self.unread(key):
            self._grown[key] = None

    def give_up(self, key: LogKey) -> int | None:
        """Return the offset to skip to, if the next bytes will not come: their container has died.

        None: they are requested again later.
        """
        known, begin = self.source.logs[key], self.cursor.of(key)
        since = self._missing[key][0] if key in self._missing else time.monotonic()
        late = time.monotonic() - since > GIVE_UP and self.source.behind is None
        newer = known.end if begin >= known.kept_from else known.kept_from
        if self.source.ended or (late and begin < newer < known.end):
            self._missing.pop(key, None)
            self._grown[key] = None
            return newer
        self.retry_later(key)
        return None

    def retry_later(self, key: LogKey) -> None:
        """Return this log from ``next_log`` again after a pause."""
        now = time.monotonic()
        since = self._missing[key][0] if key in self._missing else now
        pause = min(MAX_RETRY, max(RETRY, (now - since) / 2))
        timer = asyncio.get_running_loop().call_later(pause, self._retry, key)
        self._missing[key] = (since, timer)

    def _retry(self, key: LogKey) -> None:
        self._grown[key] = None
        self._event.set()


class StartOffsets:
    """Start offsets of logs for one connection.

    A log in ``at`` continues at its position. If the client has read another attempt of the task,
    newer logs are sent from the start. Other logs start ``tail`` bytes before their end, in the
    newest attempt only, or in each attempt that the live stream sends if ``streamed``. Without
    ``tail``, everything is sent.
    """

    def __init__(
        self,
        tasks: Sequence[str],
        at: Mapping[LogKey, int],
        tail: int | None,
        *,
        streamed: bool = False,
    ) -> None:
        self._tasks, self._at, self._tail, self._streamed = tasks, at, tail, streamed
        self._every = ALL_TASKS in tasks
        #: Oldest attempt of each task that the client has read.
        self._oldest_read: dict[str, tuple[int, int]] = {}
        #: Newest attempt of each task that was started for this connection.
        self._newest_started: dict[str, tuple[int, int]] = {}
        for key in at:
            attempt = key.order
            self._oldest_read[key.task] = min(self._oldest_read.get(key.task, attempt), attempt)

    def wants(self, task: str) -> bool:
        """Return whether logs of this task were requested."""
        return self._every or task in self._tasks

    def of(self, key: LogKey, logs: Mapping[LogKey, GrowingLog], ready: float | None) -> int | None:
        """Return the offset of the first byte to send; None if the log is not sent.

        Parameters
        ----------
        logs
            All known logs of the job.
        ready
            Time at which the first log became known.
        """
        if key in self._at:
            return self._at[key]
        attempt, tail, known = key.order, self._tail, logs[key]
        if key.task in self._oldest_read:
            return 0 if attempt >= self._oldest_read[key.task] else None
        if tail is None:
            return 0
        begun = self._newest_started.get(key.task)
        newest = max(other.order for other in logs if other.task == key.task)
        older = attempt < (newest if begun is None else begun)
        if older and not (self._streamed and known.live):
            return None
        self._newest_started[key.task] = max(attempt, begun or attempt)
        late = ready is not None and known.since > ready + LATE
        new = late and (known.first or 0) <= MAX_NEW
        if new or (begun is not None and attempt > begun):
            return 0
        return max(0, known.end - tail)
