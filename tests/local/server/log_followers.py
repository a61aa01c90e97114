"""Pages that follow logs of a server's service within the test's own process, and jobs for them."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

from submarine_jobs.client import Job, Session
from submarine_server.channel import ChannelServices, Credit
from submarine_server.channel.log_feed import LogFeed
from submarine_server.service import JobService


class OwnCore(JobService):
    """The server's service over the session of a test."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._own = session

    def open_session(self, profile: str = "") -> Session:
        return self._own


class Page:
    """A page that follows one job: puts together what comes and minds that nothing is lost."""

    def __init__(self, service: JobService, job: str, **words: Any) -> None:
        self.service, self.job = service, job
        self.words: dict[str, Any] = {"tasks": ["*"], **words}
        self.logs: dict[str, bytearray] = {}
        self.at: dict[str, int] = dict(self.words.get("at", {}))
        self.begins: dict[str, int] = {}
        self.messages: list[Mapping[str, Any]] = []
        self.skipped = 0
        self.ended = False
        self.acknowledges = True
        self._unacknowledged = 0
        self._credit = Credit()
        self.task: asyncio.Task[None] | None = None

    async def send(self, sent: Mapping[str, Any] | str) -> None:
        message = json.loads(sent if isinstance(sent, str) else json.dumps(sent))
        self.messages.append(message)
        if message["type"] not in ("log", "skip"):
            return
        key = f"{message['task']}/{message['attempt']}/{message['stream']}"
        place = self.at.get(key)
        if place is None:
            place = self.begins[key] = message["offset"]
        assert message["offset"] == place, (key, place, message["offset"])
        if message["type"] == "skip":
            assert message["to"] > place
            self.skipped += message["to"] - place
            self.at[key] = message["to"]
            return
        data = base64.b64decode(message["data"])
        assert data
        self.logs.setdefault(key, bytearray()).extend(data)
        self.at[key] = place + len(data)
        self._unacknowledged += len(data)
        assert self._unacknowledged <= 1 << 20
        if self.acknowledges:
            self.acknowledge()

    def acknowledge(self) -> None:
        self._credit.give(self._unacknowledged)
        self._unacknowledged = 0

    def open(self) -> None:
        self._credit = Credit()
        self._unacknowledged = 0
        words = {**self.words, "job": self.job, "at": dict(self.at)}
        services = cast("ChannelServices", SimpleNamespace(service=self.service))
        feed = LogFeed(services, words, cast("Any", self.send), self._credit)

        async def run() -> None:
            await feed.run()
            self.ended = True

        self.task = asyncio.get_running_loop().create_task(run())

    async def close(self) -> None:
        if self.task is not None:
            self.task.cancel()
            await asyncio.gather(self.task, return_exceptions=True)

    async def until(self, fits: Callable[[], Any], seconds: float = 120.0) -> Any:
        deadline = time.monotonic() + seconds
        while not (value := fits()):
            if self.task is not None and self.task.done() and not self.ended:
                self.task.result()
            assert time.monotonic() < deadline, (self.at, self.messages[-3:])
            await asyncio.sleep(0.01)
        return value

    def text(self, key: str = "worker:0/e1-a1/stdout") -> str:
        return bytes(self.logs.get(key, b"")).decode()


@asynccontextmanager
async def following(*pages: Page) -> AsyncIterator[None]:
    for page in pages:
        page.open()
    try:
        yield
    finally:
        for page in pages:
            await page.close()


TALKER = """\
import itertools, os, time
for number in itertools.count():
    print("line", number, "é", flush=True)
    time.sleep(0.02)
    if os.path.exists({stop!r}):
        break
"""


def counted(count: int) -> str:
    return "".join(f"line {number} é\n" for number in range(count))


def whole(job: Job) -> dict[str, bytes]:
    """All logs of an ended job as its directory has them."""
    found = {}
    for task in job.task_names:
        for attempt in job.attempts(task):
            for stream in ("stdout", "stderr"):
                pieces = job.read_log(stream, task=task, attempt=attempt)
                if data := b"".join(piece.data for piece in pieces):
                    found[f"{task}/{attempt}/{stream}"] = data
    return found
