"""Logs of a job for one page: each byte of each log in order and once, at the pace of the page.

Keeps a position in every log and no data: what the page has credit for is taken from what was just
heard (``job_log``) or read by offset (``logs.reader``). So a broken live path, a job that ends in
between or a page that was asleep costs no byte; a page that falls far behind a log that grows is
sent on with a ``skip``. Where a log begins for a page is ``log_words``.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any

from submarine_jobs.errors import SubmarineError
from submarine_jobs.logs import LogKey
from submarine_server.channel.feed import Credit, Feed, Send, Services, job_in
from submarine_server.channel.log_request import Beginnings, Wanted
from submarine_server.logs import GrowingLog, JobLog, LogReader, job_logs

log = logging.getLogger(__name__)

#: Bytes of one message of what was just heard, and of what was read.
PIECE, READ_PIECE = 64 << 10, 256 << 10
#: Bytes of credit that are waited for before a message is worth it.
WORTH = 16 << 10
#: Bytes by which a page may fall behind, further than it was, before it is sent on; and those
#: before the end where it goes on.
MAX_BEHIND, KEPT_BEHIND = 8 << 20, 256 << 10
#: Seconds between attempts to read what cannot be had, growing; and when it is given up while the
#: job runs and newer bytes are there.
RETRY, RETRY_MOST, GIVE_UP = 0.5, 10.0, 60.0


class LogFeed(Feed):
    """``{"kind": "log", "job", "tasks", "at", "tail"}``."""

    kind = "log"

    def __init__(
        self, services: Services, words: Mapping[str, Any], send: Send, credit: Credit
    ) -> None:
        super().__init__(services, words, send, credit)
        self._id = job_in(words)
        wanted = Wanted.of(words)
        self.tasks: Sequence[str] = wanted.tasks
        self.tail, self.resumes = wanted.tail, bool(wanted.at)
        self._beginnings = Beginnings(wanted)
        self._at: dict[LogKey, int] = {}
        self._grown: dict[LogKey, None] = {}
        #: Logs whose next bytes could not be had: since when, and the timer of the next attempt.
        self._missing: dict[LogKey, tuple[float, asyncio.TimerHandle]] = {}
        self._news = asyncio.Event()
        self._told: float | None = None
        #: The least by which the page was behind since it was last sent on.
        self._nearest = 1 << 62

    def heard(self, key: LogKey) -> None:
        """See ``Follower``."""
        if self._beginnings.wants(key.task) and key not in self._missing:
            self._grown[key] = None
            self._news.set()

    def changed(self) -> None:
        """See ``Follower``."""
        self._news.set()

    async def run(self) -> None:
        """See ``Feed``."""
        core = self.services.core
        job = job_logs.join(core, self._id, self)
        try:
            for key in list(job.logs):
                self.heard(key)
            await self._pump(job)
        finally:
            job_logs.leave(core, self._id, job, self)
            for _, timer in self._missing.values():
                timer.cancel()

    async def _pump(self, job: JobLog) -> None:
        while True:
            self._news.clear()
            if job.failure is not None:
                raise job.failure
            await self._tell_behind(job)
            if self._grown:
                key = next(iter(self._grown))
                del self._grown[key]
                await self._forward(job, key)
            elif job.ended and not self._missing:
                return
            else:
                await self._news.wait()

    async def _tell_behind(self, job: JobLog) -> None:
        """How far behind what is sent is; None once the job is heard again."""
        now = None if job.behind is None else round(job.behind, 1)
        if now != self._told:
            self._told = now
            await self.send({"type": "behind", "seconds": now})

    async def _forward(self, job: JobLog, key: LogKey) -> None:
        """Send the next piece of one log; the rest of it waits for its turn."""
        known = job.logs[key]
        if key not in self._at:
            begin = self._beginnings.of(key, job.logs, job.ready)
            if begin is None:
                return
            self._at[key] = begin
        if known.end <= self._at[key]:
            return
        await self._wait_for_credit(job, key, known)
        begin = self._at[key]
        size = min(known.end - begin, self.credit.left)
        data: bytes | None = known.kept(begin, min(size, PIECE))
        if not data and job.reader is not None:
            data = await self._read(job.reader, key, begin, min(size, READ_PIECE))
        if data is None:
            self._try_later(key)
            return
        if not data:
            await self._cannot_be_had(job, key, known)
            return
        self._missing.pop(key, None)
        await self._send(key, begin, data)
        if known.end > self._at[key]:
            self._grown[key] = None

    async def _send(self, key: LogKey, begin: int, data: bytes) -> None:
        self._at[key] = begin + len(data)
        self.credit.spend(len(data))
        text = base64.b64encode(data).decode("ascii")
        await self.send({"type": "log", **_named(key), "offset": begin, "data": text})

    async def _wait_for_credit(self, job: JobLog, key: LogKey, known: GrowingLog) -> None:
        """Wait until the page can take more; if it fell too far behind meanwhile, send it on."""
        worth = min(WORTH, known.end - self._at[key])
        if self.credit.left >= worth:
            return
        self._nearest = min(self._nearest, self._behind(job))
        await self.credit.wait(worth)
        if job.ended or self._behind(job) - self._nearest <= MAX_BEHIND:
            return
        for name, place in list(self._at.items()):
            end = job.logs[name].end
            if end - place > KEPT_BEHIND:
                await self._skip(name, job.logs[name].line_after(end - KEPT_BEHIND))
        self._nearest = self._behind(job)

    def _behind(self, job: JobLog) -> int:
        """Bytes that the page has not got yet."""
        return sum(max(0, job.logs[key].end - place) for key, place in self._at.items())

    async def _skip(self, key: LogKey, to: int) -> None:
        begin, self._at[key] = self._at[key], to
        await self.send({"type": "skip", **_named(key), "offset": begin, "to": to})

    async def _read(self, reader: LogReader, key: LogKey, begin: int, size: int) -> bytes | None:
        """Bytes by offset; empty: there are none; None: nobody can tell now."""
        try:
            chunk, _ = await self.services.core.call(reader.read, key, begin, size)
        except FileNotFoundError:
            return b""
        except (SubmarineError, TimeoutError) as error:
            log.debug("reading %s of %s: %s", key, self._id, error)
            return None
        return chunk.data if chunk.offset == begin else b""

    async def _cannot_be_had(self, job: JobLog, key: LogKey, known: GrowingLog) -> None:
        """What was heard of is nowhere: perhaps later, perhaps it died with its container."""
        since = self._missing[key][0] if key in self._missing else time.monotonic()
        given_up = time.monotonic() - since > GIVE_UP and job.behind is None
        newer = known.end if job.ended else known.kept_from
        if job.ended or (given_up and self._at[key] < newer < known.end):
            self._missing.pop(key, None)
            await self._skip(key, newer)
            self.heard(key)
        else:
            self._try_later(key)

    def _try_later(self, key: LogKey) -> None:
        now = time.monotonic()
        since = self._missing[key][0] if key in self._missing else now
        pause = min(RETRY_MOST, max(RETRY, (now - since) / 2))
        timer = asyncio.get_running_loop().call_later(pause, self._try_again, key)
        self._missing[key] = (since, timer)

    def _try_again(self, key: LogKey) -> None:
        self._grown[key] = None
        self._news.set()


def _named(key: LogKey) -> dict[str, str]:
    return {"task": key.task, "attempt": key.attempt, "stream": key.stream}
