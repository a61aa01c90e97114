"""Logs on the server's side over real jobs: followed through every break, read, searched."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import socket
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from server_rig import API, TOKEN, Server
from tornado.httpclient import HTTPRequest
from tornado.websocket import websocket_connect

from submarine_jobs.bundle import build_bundle
from submarine_jobs.cells import Cell
from submarine_jobs.job import Job
from submarine_jobs.profile import Profile
from submarine_jobs.session import Session
from submarine_jobs.spec import JobSpec, Resources, Role
from submarine_server.channel.feeds import Credit, Services
from submarine_server.channel.log_feed import LogFeed
from submarine_server.core import Core

Submit = Callable[..., Job]


class OwnCore(Core):
    """The server's core over the session of a test."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._own = session

    def session_now(self, profile: str = "") -> Session:
        return self._own


class Page:
    """A page that follows one job: puts together what comes and minds that nothing is lost."""

    def __init__(self, core: Core, job: str, **words: Any) -> None:
        self.core, self.job = core, job
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

    async def send(self, message: Mapping[str, Any]) -> None:
        json.dumps(message)
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
        services = cast("Services", SimpleNamespace(core=self.core))
        feed = LogFeed(services, words, self.send, self._credit)

        async def run() -> None:
            await feed.run()
            self.ended = True

        self.task = asyncio.get_running_loop().create_task(run())

    async def close(self) -> None:
        if self.task is not None:
            self.task.cancel()
            await asyncio.gather(self.task, return_exceptions=True)

    async def until(self, fits: Callable[[], Any], seconds: float = 30.0) -> Any:
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


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(Profile(backend="local", state_dir=tmp_path / "state"))


def submitter(session: Session) -> Iterator[Submit]:
    jobs: list[Job] = []

    def run(source: str, *roles: Role, **changes: Any) -> Job:
        cell = Cell("cell-1", source, label="[1]", execution_count=1)
        bundle = build_bundle([cell])
        chosen = roles or (Role(resources=Resources(memory=256)),)
        spec = JobSpec("test", "local", roles=chosen, python=sys.executable, **changes)
        jobs.append(session.submit(spec, bundle))
        return jobs[-1]

    yield run
    for job in jobs:
        if not job.record().state.ended:
            job.cancel()


@pytest.fixture
def submit(session: Session) -> Iterator[Submit]:
    yield from submitter(session)


COUNTER = """\
import os, sys, time
for number in range(int({count})):
    print("line", number, "é", flush=True)
    time.sleep({pause})
"""


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


def test_a_log_is_followed_from_before_the_job_runs_to_its_end(
    session: Session, submit: Submit
) -> None:
    async def main() -> None:
        core = OwnCore(session)
        job = submit(COUNTER.format(count=100, pause=0.01))
        page = Page(core, job.id)
        near = Page(core, job.id, tasks=["worker:0"], tail=20)
        async with following(page, near):
            await page.until(lambda: page.ended)
            await near.until(lambda: near.ended)
        assert page.text() == counted(100)
        assert near.text()
        assert counted(100).endswith(near.text())
        assert not [m for m in page.messages if m["type"] == "behind"]
        ended = Page(core, job.id, tail=30)
        async with following(ended):
            await ended.until(lambda: ended.ended)
        assert ended.text().encode() == counted(100).encode()[-30:]
        again = Page(core, job.id, at=dict(page.at))
        async with following(again):
            await again.until(lambda: again.ended)
        assert again.logs == {}

    asyncio.run(main())


GANG = """\
import os, sys, time
me = os.environ["SUBMARINE_ROLE"] + ":" + os.environ["SUBMARINE_INDEX"]
for step in range(60):
    print(me, "step", step, flush=True)
    print("warning", step, file=sys.stderr, flush=True)
    if me == "worker:1" and step == 20 and os.environ["SUBMARINE_ATTEMPT"] == "1":
        os.kill(os.getpid(), 9)
    time.sleep(0.02)
"""


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


def test_a_gang_with_a_restarted_task_loses_and_repeats_no_byte(
    session: Session, submit: Submit
) -> None:
    async def main() -> None:
        core = OwnCore(session)
        roles = [Role("worker", 2, Resources(memory=128)), Role("ps", 1, Resources(memory=128))]
        job = submit(GANG, *roles, framework="any", max_restarts=1)
        every, one = Page(core, job.id), Page(core, job.id, tasks=["worker:1"])
        async with following(every):
            await every.until(lambda: len(every.text("worker:1/e1-a1/stdout")) > 100)
            async with following(one):  # one more task is not heard twice
                await every.until(lambda: every.ended)
                await one.until(lambda: one.ended)
        expected = whole(job)
        assert len({key for key in expected if key.startswith("worker:1/")}) == 4
        assert {key: bytes(data) for key, data in every.logs.items()} == expected
        mine = {key: data for key, data in expected.items() if key.startswith("worker:1/")}
        assert {key: bytes(data) for key, data in one.logs.items()} == mine
        late = Page(core, job.id)
        async with following(late):
            await late.until(lambda: late.ended)
        assert {key: bytes(data) for key, data in late.logs.items()} == expected
        newest = Page(core, job.id, tasks=["worker:1"], tail=10)
        async with following(newest):
            await newest.until(lambda: newest.ended)
        assert sorted(newest.logs) == ["worker:1/e1-a2/stderr", "worker:1/e1-a2/stdout"]

    asyncio.run(main())


class Gate:
    """A TCP proxy before a job's port, which cuts its connections and can be shut."""

    def __init__(self) -> None:
        self.shut = False
        self.connections = 0
        self._writers: set[asyncio.StreamWriter] = set()

    async def open(self, job: Job) -> None:
        live = Path(job.job_dir.removeprefix("file://")) / "live.json"
        while not live.exists():
            await asyncio.sleep(0.01)
        self._live, said = live, json.loads(live.read_text())
        self._behind = (said["host"], said["port"])
        self.server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        said["host"], said["port"] = self.server.sockets[0].getsockname()[:2]
        live.with_suffix(".new").write_text(json.dumps(said))
        live.with_suffix(".new").replace(live)

    def cut(self) -> None:
        for writer in list(self._writers):
            writer.transport.abort()

    async def close(self) -> None:
        self.server.close()
        self.cut()
        await asyncio.sleep(0.05)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.shut:
            writer.close()
            return
        try:
            back, there = await asyncio.open_connection(*self._behind)
        except OSError:
            writer.close()
            return
        self._writers |= {writer, there}
        self.connections += 1

        async def pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
            try:
                while data := await source.read(1 << 16):
                    target.write(data)
                    await target.drain()
            except OSError:
                pass
            target.close()

        await asyncio.gather(pump(reader, there), pump(back, writer), return_exceptions=True)
        self._writers -= {writer, there}


def test_cut_connections_and_a_long_outage_cost_no_byte(
    session: Session, submit: Submit, tmp_path: Path
) -> None:
    async def main() -> None:
        core = OwnCore(session)
        job = submit(TALKER.format(stop=str(tmp_path / "stop")))
        gate = Gate()
        await gate.open(job)
        page, other = Page(core, job.id), Page(core, job.id)
        async with following(page, other):
            for number in range(1, 4):
                await page.until(lambda least=number: gate.connections >= least)
                seen = len(page.text())
                await page.until(lambda before=seen: len(page.text()) > before)
                gate.cut()
            await page.until(lambda: gate.connections >= 4)
            gate.shut = True
            gate.cut()
            behind = await page.until(lambda: [m for m in page.messages if m["type"] == "behind"])
            assert behind[0]["seconds"] >= 0
            seen = len(page.text())
            # Shipped segments alone carry it on.
            await page.until(lambda: len(page.text()) > seen)
            gate.shut = False
            told = await page.until(
                lambda: [m for m in page.messages if m["type"] == "behind" and m["seconds"] is None]
            )
            assert told
            (tmp_path / "stop").touch()
            await page.until(lambda: page.ended)
            await other.until(lambda: other.ended)
        await gate.close()
        assert page.text() == other.text() == counted(page.text().count("\n"))
        assert page.skipped == 0

    asyncio.run(main())


def test_a_page_that_comes_and_goes_gets_every_byte_once(session: Session, submit: Submit) -> None:
    async def main() -> None:
        job = submit(COUNTER.format(count=300, pause=0.01))
        page = Page(OwnCore(session), job.id)
        while not page.ended:
            # As after a restart of the server: nothing is remembered but the page's own places.
            page.core = OwnCore(session)
            page.open()
            before = len(page.text())
            await page.until(lambda seen=before: page.ended or len(page.text()) > seen)
            await page.close()
            await asyncio.sleep(0.1)
        assert page.text() == counted(300)

    asyncio.run(main())


FLOOD = """\
import os, sys, time
place = {place!r}
line = "x" * 99 + "\\n"
for name, blocks in (("go", 20), ("stop", 280)):
    for _ in range(blocks):
        sys.stdout.write(line * 1000)
    sys.stdout.flush()
    while not os.path.exists(os.path.join(place, name)):
        time.sleep(0.02)
print("the end", flush=True)
"""


def test_a_page_that_sleeps_is_sent_on_and_told_what_it_missed(
    session: Session, submit: Submit, tmp_path: Path
) -> None:
    key = "worker:0/e1-a1/stdout"

    async def main() -> None:
        core = OwnCore(session)
        job = submit(FLOOD.format(place=str(tmp_path)))
        page, awake = Page(core, job.id), Page(core, job.id)
        page.acknowledges = False
        async with following(page, awake):
            await awake.until(lambda: awake.at.get(key) == 2_000_000)
            await page.until(lambda: page.at.get(key) == 1 << 20)
            (tmp_path / "go").touch()
            await awake.until(lambda: awake.at[key] == 30_000_000, 60)
            assert page.at[key] == 1 << 20
            page.acknowledges = True
            page.acknowledge()
            await page.until(lambda: page.at[key] == 30_000_000)
            (tmp_path / "stop").touch()
            await awake.until(lambda: awake.ended)
            await page.until(lambda: page.ended)
        length = 30_000_000 + len("the end\n")
        assert (awake.skipped, awake.at) == (0, {key: length})
        assert page.at == {key: length}
        assert page.skipped > 20_000_000
        assert page.skipped + len(page.logs[key]) == length
        assert page.text().endswith("the end\n")
        kept = bytes(page.logs[key][1 << 20 :])
        assert kept.startswith(b"x" * 99 + b"\n"), "it goes on at the beginning of a line"

    asyncio.run(main())


def test_nothing_is_asked_when_nobody_looks(session: Session, submit: Submit) -> None:
    async def main() -> None:
        core = OwnCore(session)
        job = submit(TALKER.format(stop="/nothing"))
        gate = Gate()
        await gate.open(job)
        pages = [Page(core, job.id, tail=1000) for _ in range(20)]
        async with following(*pages):
            await pages[-1].until(lambda: all(page.text() for page in pages))
            assert gate.connections < 20
            assert len(gate._writers) == 2, "pages share one connection to the job"
        nobody = Page(core, job.id)
        await nobody.until(lambda: not gate._writers)
        await nobody.until(lambda: not [t for t in asyncio.all_tasks() if "JobLog" in repr(t)])
        await gate.close()
        job.cancel()

    asyncio.run(main())


NUMBERED = """\
import sys, time
text = "".join(f"step {n} loss é {n * n}\\n" for n in range(20000))
sys.stdout.write(text + "ValueError: <script>alert(1)</script>\\n")
sys.stdout.flush()
sys.stderr.write("warned\\n")
"""
TEXT = "".join(f"step {n} loss é {n * n}\n" for n in range(20000)).encode()
TEXT += b"ValueError: <script>alert(1)</script>\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    made = Server(tmp_path_factory.mktemp("server"), SUBMARINE_BACKEND="local")
    made.start()
    yield made
    made.stop()


@pytest.fixture(scope="module")
def runner(server: Server) -> Iterator[Submit]:
    session = Session(Profile(backend="local", state_dir=server.scratch / "state"))
    yield from submitter(session)


@pytest.fixture(scope="module")
def going(runner: Submit) -> Job:
    """A job that has written all and runs on."""
    job = runner(NUMBERED + "time.sleep(600)\n")
    deadline = time.monotonic() + 30
    while job.log(offset=-8).data[-8:] != TEXT[-8:]:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return job


@pytest.fixture(scope="module")
def over(runner: Submit) -> Job:
    job = runner(NUMBERED)
    job.wait_success(60)
    return job


@pytest.fixture(params=["going", "over"])
def either(request: pytest.FixtureRequest) -> Job:
    return cast("Job", request.getfixturevalue(request.param))


def lines(data: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in data.splitlines()]


def test_logs_are_listed_with_their_lengths(server: Server, either: Job) -> None:
    found = server.call("GET", f"jobs/{either.id}/logs").json["logs"]
    place = {"task": "worker:0", "attempt": "e1-a1"}
    assert found == [
        {**place, "stream": "stderr", "length": 7},
        {**place, "stream": "stdout", "length": len(TEXT)},
    ]


def test_bytes_by_offset(server: Server, either: Job) -> None:
    path = f"jobs/{either.id}/log?task=worker:0&attempt=e1-a1&stream=stdout"
    end = server.call("GET", f"{path}&offset=-100&limit=50")
    assert end.data == TEXT[-100:-50]
    assert end.headers["x-submarine-offset"] == str(len(TEXT) - 100)
    assert end.headers["x-submarine-length"] == str(len(TEXT))
    assert server.call("GET", f"{path}&offset=17&limit=9").data == TEXT[17:26]
    assert server.call("GET", f"{path}&offset={len(TEXT) + 9}").data == b""
    newest = server.call("GET", f"jobs/{either.id}/log?stream=stderr")
    assert (newest.data, newest.headers["x-submarine-attempt"]) == (b"warned\n", "e1-a1")
    for answer in (end, newest):
        assert answer.headers["content-type"] == "text/plain; charset=utf-8"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "sandbox" in answer.headers["content-security-policy"]


def test_times_by_offset(server: Server, either: Job) -> None:
    path = f"jobs/{either.id}/log/times?task=worker:0&stream=stdout"
    # The task looks every second.
    found = server.until(path, lambda said: said["times"] and said["times"][-1][0] == len(TEXT))
    assert (found["attempt"], found["exact"]) == ("e1-a1", True)
    record = either.record()
    assert record.created is not None
    assert all(record.created - 1 < moment < time.time() + 1 for _, moment in found["times"])
    # Of a part: all that tell of it, and the first behind it.
    first = found["times"][0]
    part = server.call("GET", f"{path}&offset=0&limit={first[0]}").json
    assert part["times"] == [first]
    none = server.call("GET", f"{path}&offset={len(TEXT)}").json
    assert none["times"] == []
    missing = server.call("GET", f"jobs/{either.id}/log/times?task=worker:7&attempt=e1-a1").json
    assert missing == {"attempt": "e1-a1", "times": [], "exact": False}


def test_a_download_is_whole_and_named(server: Server, either: Job) -> None:
    path = f"jobs/{either.id}/log?task=worker:0&attempt=e1-a1&stream=stdout&download=1"
    answer = server.call("GET", path)
    assert answer.data == TEXT
    name = f"{either.id}-worker-0-e1-a1-stdout.log"
    assert answer.headers["content-disposition"] == f'attachment; filename="{name}"'
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"


def test_searching(server: Server, either: Job) -> None:
    path = f"jobs/{either.id}/log/search?task=worker:0&attempt=e1-a1&stream=stdout"
    *hits, done = lines(server.call("GET", f"{path}&q=STEP+777+&limit=5").data)
    at = TEXT.index(b"step 777 ")
    assert [(hit["line_offset"], hit["offset"], hit["length"]) for hit in hits] == [(at, at, 9)]
    assert hits[0]["text"] == f"step 777 loss é {777 * 777}"
    assert done == {"done": True, "next": None, "scanned": len(TEXT)}
    back = f"{path}&q=loss+%C3%A9+1%5Cd*9$&regex=1&case=1&backward=1&limit=3"
    *hits, done = lines(server.call("GET", back).data)
    expected = [match.start() for match in re.finditer("loss é 1\\d*9\n".encode(), TEXT)]
    assert [hit["offset"] for hit in hits] == expected[:-4:-1]
    *more, _ = lines(server.call("GET", f"{back}&from={done['next']}").data)
    assert [hit["offset"] for hit in more] == expected[-4:-7:-1]
    (error, _) = lines(server.call("GET", f"{path}&preset=errors").data)
    assert error["text"] == "ValueError: <script>alert(1)</script>"


def test_what_makes_no_sense_is_refused(server: Server, over: Job) -> None:
    path = f"jobs/{over.id}/log"
    for words in (
        "task=../../..&attempt=e1-a1",
        "task=worker:0&attempt=..%2Fe1-a1",
        "task=worker:0%0a&attempt=e1-a1",
        "stream=..%2Fsecret.json",
        "stream=samples",
        "offset=x",
        "offset=1e9",
        "limit=-1",
        "limit=999999999999",
        "download=2",
    ):
        answer = server.call("GET", f"{path}?{words}")
        assert answer.status == 400, words
        assert answer.json["error"]
    for words in ("task=../..", "attempt=..%2Fe1-a1", "stream=samples", "offset=-1", "limit=x"):
        assert server.call("GET", f"{path}/times?{words}").status == 400, words
    for words in ("q=", "q=(&regex=1", "q=a&from=-2", "q=a&limit=0", "q=" + "a" * 1001, "q=a%0ab"):
        assert server.call("GET", f"{path}/search?{words}").status == 400, words
    assert server.call("GET", "jobs/..%2f..%2fetc/log").status == 404
    assert server.call("GET", "jobs/none-20261120-7f3a/log").status == 404
    for path in ("logs", "log", "log/times", "log/search?q=a"):
        assert server.call("GET", f"jobs/{over.id}/{path}", token=None).status == 403
        answer = server.call("GET", f"jobs/{over.id}/{path}", Origin="http://evil.example")
        assert answer.status == 403


def test_a_task_without_a_log_is_said_so(server: Server, over: Job) -> None:
    answer = server.call("GET", f"jobs/{over.id}/log?task=worker:7")
    assert (answer.status, answer.json["error"]) == (
        400,
        f"Task worker:7 of {over.id} has no log yet.",
    )
    missing = server.call("GET", f"jobs/{over.id}/log?task=worker:7&attempt=e1-a1")
    assert (missing.data, missing.headers["x-submarine-length"]) == (b"", "0")


async def websocket(server: Server) -> Any:
    url = f"{server.origin.replace('http', 'ws')}{API}channel?token={TOKEN}"
    request = HTTPRequest(url, headers={"Origin": server.origin}, connect_timeout=5)
    return await websocket_connect(request)


async def closed(channel: Any) -> None:
    """Close it, and wait until its socket is."""
    channel.close()
    while await asyncio.wait_for(channel.read_message(), 10) is not None:
        pass


def test_a_server_that_is_killed_in_the_middle_of_a_log_costs_no_byte(
    server: Server, runner: Submit, tmp_path: Path
) -> None:
    job = runner(TALKER.format(stop=str(tmp_path / "stop")))
    page = Page(cast("Core", None), job.id)

    async def listen(enough: Callable[[], bool]) -> None:
        channel = await websocket(server)
        words = {"kind": "log", "job": job.id, "tasks": ["*"], "at": dict(page.at)}
        await channel.write_message(json.dumps({"op": "subscribe", "id": 7, **words}))
        page._unacknowledged = 0
        while not page.ended and not enough():
            message = json.loads(await asyncio.wait_for(channel.read_message(), 30))
            if message["type"] == "end":
                page.ended = True
            elif message["type"] != "hello":
                assert message["type"] in ("log", "behind"), message
                await page.send(message)
        if not page.ended and server.process is not None:
            server.process.kill()
            server.process.wait()
        await closed(channel)

    for number in (1, 2):
        asyncio.run(listen(lambda least=number: len(page.text()) > 1000 * least))  # type: ignore[misc]
        server.start()
    (tmp_path / "stop").touch()
    asyncio.run(listen(lambda: False))
    assert page.text() == counted(page.text().count("\n"))
    assert page.text().encode() == whole(job)["worker:0/e1-a1/stdout"]
    assert page.skipped == 0


def test_a_search_whose_page_goes_away_ends_and_leaves_room(server: Server, over: Job) -> None:
    path = f"{API}jobs/{over.id}/log/search?task=worker:0&attempt=e1-a1&q=step&limit=5000"
    for _ in range(40):
        with socket.create_connection(("127.0.0.1", server.port), 5) as connection:
            words = f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: token {TOKEN}\r\n\r\n"
            connection.sendall(words.encode())
    *hits, _ = lines(server.call("GET", f"{path}&from=0").data)
    assert len(hits) == 5000


def test_nonsense_in_a_subscription_is_told_and_ends_it(server: Server, over: Job) -> None:
    async def main() -> None:
        channel = await websocket(server)
        asked: list[dict[str, Any]] = [
            {"job": "../../etc", "tasks": ["*"]},
            {"job": over.id, "tasks": []},
            {"job": over.id, "tasks": "*"},
            {"job": over.id, "tasks": ["../x"]},
            {"job": over.id, "tasks": ["*"], "at": {"worker:0/../x": 1}},
            {"job": over.id, "tasks": ["*"], "at": {"worker:0/e1-a1/stdout": -1}},
            {"job": over.id, "tasks": ["*"], "at": [1]},
            {"job": over.id, "tasks": ["*"], "tail": "x"},
            {"job": "none-20261120-7f3a", "tasks": ["*"]},
        ]
        for number, words in enumerate(asked):
            message = {"op": "subscribe", "id": number, "kind": "log", **words}
            await channel.write_message(json.dumps(message))
        told = set()
        while len(told) < len(asked):
            message = json.loads(await asyncio.wait_for(channel.read_message(), 30))
            if message["type"] != "hello":
                assert message["type"] == "error", message
                told.add(message["id"])
        await closed(channel)

    asyncio.run(main())
