"""All logs of one job while somebody looks: one connection to the job, whatever many follow it.

Hears the job's live stream; while that is down it lists what was shipped and tries again. Says to
its followers which log has grown; they take the bytes at their own pace (``log_feed``). Ends when
the last of them leaves: nothing is asked while nobody looks.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import logging
import time
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from typing import Any

from submarine_jobs.access import StreamBrokenError, attempt_of, open_stream
from submarine_jobs.errors import SubmarineError
from submarine_jobs.logs import LogKey, key_of, order
from submarine_server.logs.followers import Follower, Followers, wants_history
from submarine_server.logs.growing_log import GrowingLog
from submarine_server.logs.lengths import EVERY, Survey, shipped_now, survey
from submarine_server.logs.listing import reader_of
from submarine_server.logs.reader import LogReader
from submarine_server.service import Core

log = logging.getLogger(__name__)

#: Seconds between looks while nobody answers at the job's port: from, to, growing by half.
FIRST_PAUSE, LAST_PAUSE = 0.5, 3.0
#: Bytes that are asked for of each log when a connection begins: of one task, of several.
TAIL_ALONE, TAIL_MANY = 256 << 10, 32 << 10
#: Newest bytes that are kept: of all logs of a job together; of each at least, at most.
KEEP, KEEP_LEAST, KEEP_MOST = 8 << 20, 16 << 10, 512 << 10
#: Logs of one job that are followed; further ones are not heard.
MAX_LOGS = 4096
#: When the end of a log is looked for that its container could not send: seconds after its task
#: went on with another attempt.
REST = (2.0, 5.0, 15.0, 40.0)

Failure = (SubmarineError, StreamBrokenError, OSError, ValueError, KeyError, TypeError)


class JobLog:
    """The logs of one job."""

    def __init__(self, core: Core, job_id: str) -> None:
        self._core, self._job_id = core, job_id
        self._followers = Followers()
        self._heard_of: frozenset[str] = frozenset()
        self._main: asyncio.Task[None] | None = None
        self._listening: asyncio.Task[bool] | None = None
        self._helpers: set[asyncio.Task[None]] = set()
        self.logs: dict[LogKey, GrowingLog] = {}
        self.reader: LogReader | None = None
        #: When something was known of the job's logs first; what is new later is new.
        self.ready: float | None = None
        #: Every log is as long as it will be.
        self.ended = False
        self.failure: SubmarineError | None = None
        #: How many seconds what was shipped is behind while nobody answers at the job's port.
        self.behind: float | None = None
        self._heard_last = time.monotonic()
        #: Whether the job said where it listens and does not answer there.
        self._refused = False

    def join(self, follower: Follower) -> None:
        """Begin to tell ``follower``."""
        self._followers.add(follower)
        if self._main is None:
            self._main = asyncio.get_running_loop().create_task(self._run())
        elif self._listening is not None:
            if EVERY not in self._heard_of and not self._followers.tasks <= self._heard_of:
                self._listening.cancel()  # and begins again with more tasks
            if wants_history(follower):
                self._help(self._look_back())

    def leave(self, follower: Follower) -> bool:
        """Tell it no more; whether it was the last."""
        self._followers.discard(follower)
        if self._followers:
            return False
        for task in [self._main, self._listening, *self._helpers]:
            if task is not None:
                task.cancel()
        return True

    async def _run(self) -> None:
        try:
            self.reader = await self._core.call(reader_of, self._core, self._job_id)
            await self._follow(self.reader)
        except SubmarineError as error:
            self.failure = error
        except Exception:  # a fault of ours: told, and no page waits for ever
            log.exception("following the log of %s failed", self._job_id)
            self.failure = SubmarineError("The server failed at this; its log says how.")
        self._followers.changed()

    async def _follow(self, reader: LogReader) -> None:
        """Hear the job, or look for what it has shipped, until it has ended."""
        pause, began = FIRST_PAUSE, time.monotonic()
        asked = began
        while not self.ended:
            self._listening = asyncio.get_running_loop().create_task(self._listen(reader))
            try:
                heard = await self._listening
            except asyncio.CancelledError:
                if self._main is None or self._main.cancelling():
                    raise
                continue  # with more tasks
            finally:
                self._listening = None
            ask = time.monotonic() - asked > (30.0 if self.behind is None else 10.0)
            asked = time.monotonic() if ask else asked
            try:
                found = await self._core.call(
                    survey,
                    reader,
                    self._followers.tasks,
                    list(self.logs),
                    history=self._followers.history,
                    ask=ask,
                )
                self._learn(found, heard=heard)
            except (SubmarineError, TimeoutError, FileNotFoundError) as error:
                log.debug("looking at the log of %s: %s", self._job_id, error)
                self.behind = time.monotonic() - self._heard_last
                self._followers.changed()
            pause = FIRST_PAUSE if heard else min(pause * 1.5, LAST_PAUSE)
            if not self.ended:
                await asyncio.sleep(pause)

    def _learn(self, found: Survey, *, heard: bool) -> None:
        self._add(found.lengths)
        self.ready = self.ready or time.monotonic()
        self.ended = found.ended
        # What was heard a moment ago may be back in a moment.
        if found.ended or not self._refused:
            self.behind = None
        elif not heard:
            silent = time.monotonic() - self._heard_last
            self.behind = silent if found.behind is None else found.behind
        self._followers.changed()

    async def _listen(self, reader: LogReader) -> bool:
        """Hear the live stream until it ends or breaks; whether anything was heard."""
        heard = False
        try:
            address = await self._core.call(reader.address)
            self._refused = address is not None
            if address is None:
                return False
            self._heard_of = self._followers.tasks
            many = len(self._heard_of) > 1 or EVERY in self._heard_of
            tail = TAIL_MANY if many else TAIL_ALONE
            words: dict[str, str | int] = {"tasks": ",".join(sorted(self._heard_of)), "tail": tail}
            # A job of one task knows no tail but offsets, negative ones from the end.
            words |= {"stdout": -tail, "stderr": -tail}
            async with aclosing(open_stream(address, words)) as lines:
                async for line in lines:
                    self._heard_last = time.monotonic()
                    if not heard:
                        heard = True
                        self._come_up()
                    self._take(line)
        except Failure as error:
            log.debug("the live log of %s broke: %s", self._job_id, error)
        finally:
            reader.look_again()
        return heard

    def _come_up(self) -> None:
        self.ready = self.ready or time.monotonic()
        self.behind = None
        self._followers.changed()
        if self._followers.history:
            self._help(self._look_back())

    def _take(self, line: Mapping[str, Any]) -> None:
        kind = line.get("type")
        if kind not in ("log", "skip"):
            return
        key = key_of(f"{line['task']}/{attempt_of(line)}/{line['stream']}")
        known = self._log(key) if key is not None else None
        if key is None or known is None:
            return
        if kind == "skip":
            grown = known.grow(int(line["to"]))
        else:
            data = base64.b64decode(line["data"])
            keep = max(KEEP_LEAST, min(KEEP_MOST, KEEP // len(self.logs)))
            grown = known.add(max(0, int(line["offset"])), data, keep)
        if grown:
            self._followers.heard(key)

    def _log(self, key: LogKey) -> GrowingLog | None:
        known = self.logs.get(key)
        if known is None and len(self.logs) < MAX_LOGS:
            known = self.logs[key] = GrowingLog()
            older = [
                other
                for other in self.logs
                if other.task == key.task and order(other.attempt) < order(key.attempt)
            ]
            if older and self.ready is not None:
                self._help(self._chase(older))
        return known

    def _help(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._helpers.add(task)
        task.add_done_callback(self._helpers.discard)

    async def _look_back(self) -> None:
        """What was shipped before anybody listened: attempts that have ended."""
        if self.reader is not None:
            with contextlib.suppress(*Failure):
                found = await self._core.call(shipped_now, self.reader, self._followers.tasks)
                self._add(found)

    async def _chase(self, keys: Sequence[LogKey]) -> None:
        """The ends of attempts that are over: shipped when their container could."""
        for pause in REST:
            await asyncio.sleep(pause)
            if self.reader is None:
                continue
            with contextlib.suppress(*Failure):
                self._add(await self._core.call(self.reader.lengths, keys))

    def _add(self, lengths: Mapping[LogKey, int]) -> None:
        for key, length in lengths.items():
            known = self._log(key)
            if known is not None and known.grow(length):
                self._followers.heard(key)
