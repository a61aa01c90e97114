"""Logs followed by pages over real jobs: through restarts, cuts, outages, floods and sleep."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from submarine_jobs.client import Job, Session
from submarine_jobs.model import Profile, Resources, Role
from tests.local.server.log_followers import (
    TALKER,
    OwnCore,
    Page,
    counted,
    following,
    whole,
)
from tests.submission import Submit, submitting


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(Profile(backend="local", state_dir=tmp_path / "state"))


@pytest.fixture
def submit(session: Session) -> Iterator[Submit]:
    with submitting(session) as made:
        yield made


COUNTER = """\
import os, sys, time
for number in range(int({count})):
    print("line", number, "é", flush=True)
    time.sleep({pause})
"""


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


def test_a_gang_with_a_restarted_task_loses_and_repeats_no_byte(
    session: Session, submit: Submit
) -> None:
    async def main() -> None:
        core = OwnCore(session)
        roles = [Role("worker", 2, Resources(memory=128)), Role("ps", 1, Resources(memory=128))]
        job = submit(GANG, roles=roles, framework="any", max_restarts=1)
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
                await page.until(partial(lambda least: gate.connections >= least, number))
                seen = len(page.text())
                await page.until(partial(lambda before: len(page.text()) > before, seen))
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
            page.service = OwnCore(session)
            page.open()
            before = len(page.text())
            await page.until(partial(lambda seen: page.ended or len(page.text()) > seen, before))
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


def test_nothing_is_requested_without_a_viewer(session: Session, submit: Submit) -> None:
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
