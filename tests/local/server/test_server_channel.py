"""The websocket of a real jupyter-server over real jobs of this machine."""

from __future__ import annotations

import contextlib
import json
import operator
import os
import queue
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import websocket

from submarine_jobs.access import AgentClient
from submarine_jobs.backends import Observation
from submarine_jobs.client import Session, Watcher
from submarine_jobs.model import JobView, Profile
from submarine_jobs.tracking import PageView, Target, observe_all
from submarine_runtime.protocol import State
from tests.local.server.channel_page import Page, connect
from tests.local.server.jupyter_server import API, TOKEN, Server
from tests.proxy import TcpProxy
from tests.submission import Submit, make_job
from tests.waiting import PATIENCE, until

NOWHERE = "nothing-20261120-7f3a"
#: Runs until the file exists.
WAITER = """\
import os, time
while not os.path.exists({flag!r}):
    time.sleep(0.05)
"""


@pytest.fixture
def open_page(server: Server) -> Iterator[Callable[..., Page]]:
    pages: list[Page] = []

    def make(where: Server = server, port: int | None = None) -> Page:
        pages.append(Page(where, port))
        return pages[-1]

    yield make
    for each in pages:
        each.close()


@pytest.fixture
def channel(open_page: Callable[..., Page]) -> Page:
    return open_page()


def rows_of(page: Page, number: int) -> dict[str, dict[str, Any]]:
    """The jobs list as a page has it after what it has heard."""
    rows: dict[str, dict[str, Any]] = {}
    for message in page.of(number, "jobs"):
        if message["whole"]:
            rows = {}
        rows.update((row["job_id"], row) for row in message["rows"])
    return rows


def wait_for_row(page: Page, number: int, job_id: str, fits: Callable[[Any], bool]) -> None:
    """Until the list has a row of the job that fits, if it has not."""
    deadline = time.monotonic() + PATIENCE
    while not fits(rows_of(page, number).get(job_id)):
        assert time.monotonic() < deadline, rows_of(page, number).get(job_id)
        page.next()


def succeeded(row: Any) -> bool:
    return row is not None and row["state"] == "SUCCEEDED"


def test_a_job_from_a_kernel_to_its_end(channel: Page, submit: Submit, tmp_path: Path) -> None:
    channel.subscribe(1, "jobs")
    first = channel.until(lambda m: m.get("id") == 1)
    assert first["whole"]
    job = submit(WAITER.format(flag=str(tmp_path / "enough")))
    wait_for_row(channel, 1, job.id, bool)
    channel.subscribe(2, "job", job=job.id)
    channel.until(
        lambda m: m.get("id") == 2 and m["view"]["source"] == "live" and m["view"]["events"]
    )
    (tmp_path / "enough").touch()
    channel.until(lambda m: m == {"id": 2, "type": "end"})
    views = [message["view"] for message in channel.of(2, "job")]
    assert views[-1]["record"]["state"] == "SUCCEEDED"
    assert views[-1]["source"] == "final"
    kinds = {(event["writer"], event["kind"]) for event in views[-1]["events"]}
    assert ("agent", "state") in kinds
    wait_for_row(channel, 1, job.id, succeeded)
    assert not any(message["whole"] for message in channel.of(1, "jobs")[1:])


def test_a_job_that_runs_is_heard_without_waiting_for_a_poll(submit: Submit) -> None:
    job = submit("import time\ntime.sleep(600)")
    until(lambda: job.agent() is not None and job.record().state is State.RUNNING)
    known = job.index_entry()
    assert known is not None
    assert known.record is not None
    assert not known.record.events, "what is stored is old, and all there is before the agent"
    views: queue.Queue[JobView] = queue.Queue()
    polled = threading.Event()

    def observe(_targets: object) -> dict[str, Any]:
        polled.wait()
        return {}

    stop = Watcher(job.session, observe, tails=False).subscribe(job, views.put)
    try:
        view = views.get(timeout=PATIENCE)
        while view.source != "live" or not view.record.events:
            view = views.get(timeout=PATIENCE)  # though no poll ever ends
        assert view.record.state is State.RUNNING
    finally:
        polled.set()
        stop()
        job.cancel()


def test_a_kernel_leaves_a_job_to_the_page_that_shows_it(
    channel: Page, submit: Submit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the page it sends no request for its card; without, it polls and reads the stream."""
    requests: list[str] = []
    open_stream = AgentClient.stream

    def stream(*words: Any) -> Any:
        requests.append("stream")
        return open_stream(*words)

    def observe(targets: Iterable[Target]) -> Mapping[str, Observation]:
        requests.append("poll")
        return observe_all(targets)

    monkeypatch.setattr(AgentClient, "stream", stream)
    job = submit("print('begun', flush=True)\n" + WAITER.format(flag=str(tmp_path / "enough")))
    channel.subscribe(2, "job", job=job.id)
    channel.until(lambda m: m.get("id") == 2 and m["view"]["source"] == "live")
    until(lambda: PageView(job.session.profile.state_dir, job.id).valid)
    views: list[JobView] = []
    stop = Watcher(job.session, observe).subscribe(job, views.append, display=True)
    try:
        until(lambda: views and views[-1].source == "live" and views[-1].record.events)
        until(lambda: quiet(requests))
        assert views[-1].tail == ""
        channel.send(op="unsubscribe", id=2)
        until(lambda: views[-1].tail == "begun\n")
        assert requests[-1] == "stream"
        channel.subscribe(3, "job", job=job.id)
        until(lambda: views[-1].tail == "")
        before = list(requests)
        (tmp_path / "enough").touch()
        until(lambda: views[-1].record.state is State.SUCCEEDED)
        assert views[-1].tail == "begun\n"
        assert requests == before
    finally:
        stop()


def quiet(requests: list[str]) -> bool:
    before = len(requests)
    time.sleep(3)
    return len(requests) == before


def test_a_job_that_has_ended_is_sent_once(channel: Page, submit: Submit) -> None:
    job = submit("raise ValueError('<b>no</b>')")
    job.wait(60)
    for number in (1, 2):
        channel.subscribe(number, "job", job=job.id)
        channel.until(partial(operator.eq, {"id": number, "type": "end"}))
        (view,) = [message["view"] for message in channel.of(number, "job")]
        assert view["record"]["state"] == "FAILED"
        assert view["record"]["failure"]["type"] == "ValueError"
        assert view["events"]


def memory_times(page: Page, number: int) -> list[float]:
    """When memory was measured, in the order in which the page was told."""
    return [
        moment
        for message in page.of(number, "metrics")
        for series in message["series"]
        if series["name"] == "memory"
        for moment in series["t"]
    ]


def test_curves_come_whole_and_then_as_increments(
    channel: Page, submit: Submit, tmp_path: Path
) -> None:
    job = submit(WAITER.format(flag=str(tmp_path / "enough")))
    channel.subscribe(3, "metrics", job=job.id, points=100)
    channel.until(lambda _: memory_times(channel, 3))
    (tmp_path / "enough").touch()
    channel.until(lambda m: m == {"id": 3, "type": "end"})
    messages = channel.of(3, "metrics")
    assert len(messages) > 1
    assert [message["whole"] for message in messages].count(True) == 1
    assert messages[0]["whole"]
    times = memory_times(channel, 3)
    assert times == sorted(set(times))


def test_nonsense_is_answered(channel: Page, submit: Submit) -> None:
    for text in (
        "",
        "{",
        "[]",
        "null",
        "[" * 10_000,
        '{"op": "subscribe"}',
        '{"op": "subscribe", "id": true, "kind": "jobs"}',
        '{"op": "subscribe", "id": -1, "kind": "jobs"}',
        '{"op": "subscribe", "id": 1e400, "kind": "jobs"}',
        '{"op": "subscribe", "id": 7, "kind": "passwords"}',
        '{"op": "subscribe", "id": 7, "kind": ["jobs"]}',
        '{"op": "subscribe", "id": 7, "kind": "job", "job": "../../etc/passwd"}',
        '{"op": "subscribe", "id": 7, "kind": "job"}',
        '{"op": "subscribe", "id": 7, "kind": "metrics", "job": "x", "points": 1e9}',
        '{"op": "ack", "id": 7, "bytes": -1}',
        '{"op": "ack", "id": 7, "bytes": "all"}',
        '{"op": "eval", "id": 7}',
        '{"op": "eval", "id": NaN}',
    ):
        channel.socket.send(text)
        answer = channel.next()
        assert answer["type"] == "error", text
        assert answer["code"] == "usage", text
        assert answer["error"], text
    channel.socket.send_binary(b"\xff\xfe\x00")
    assert channel.next()["type"] == "error"
    channel.send(op="unsubscribe", id=99)
    channel.send(op="ack", id=99, bytes=5)
    channel.subscribe(5, "job", job=NOWHERE)
    answer = channel.next()
    assert (answer["id"], answer["type"], answer["code"]) == (5, "error", "not_found")


def test_a_page_has_64_subscriptions(channel: Page) -> None:
    for number in range(65):
        channel.subscribe(number, "jobs")
    answer = channel.until(lambda m: m["type"] == "error")
    assert answer["id"] == 64
    channel.send(op="unsubscribe", id=3)
    channel.subscribe(100, "jobs")
    channel.until(lambda m: m.get("id") == 100 and m["type"] == "jobs")
    channel.subscribe(100, "jobs")
    assert channel.until(lambda m: m["type"] == "error")["id"] == 100


def test_a_message_that_is_too_long_ends_the_connection(channel: Page) -> None:
    # The server need not read it to the end: the sending may break as well.
    ended = (websocket.WebSocketConnectionClosedException, OSError, ValueError)
    with contextlib.suppress(OSError):
        channel.socket.send("x" * (300 << 10))
    with pytest.raises(ended):
        channel.until(lambda message: message["type"] != "hello", 20)
    assert not channel.of(-1, "error")


@pytest.mark.parametrize(
    "how",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:1"},
        {"origin": "https://127.0.0.1:{port}"},
        {"origin": None},
        {"token": None},
        {"token": "wrong"},
    ],
)
def test_only_an_own_page_of_the_user_is_let_in(server: Server, how: dict[str, Any]) -> None:
    if isinstance(how.get("origin"), str):
        how = {**how, "origin": how["origin"].format(port=server.port)}
    with pytest.raises(websocket.WebSocketBadStatusException) as refused:
        connect(server, **how)
    assert refused.value.status_code == 403
    assert "Upgrade" not in (refused.value.resp_headers or {})


def test_watching_is_no_activity(
    server: Server, open_page: Callable[..., Page], submit: Submit
) -> None:
    def last() -> datetime:
        path = f"{API.removesuffix('submarine/api/v1/')}api/status?no_track_activity=1"
        return datetime.fromisoformat(server.call("GET", path).json["last_activity"])

    before = last()
    page = open_page(server)
    job = submit("import time\ntime.sleep(3)")
    asked: tuple[tuple[str, dict[str, Any]], ...] = (
        ("jobs", {}),
        ("job", {"job": job.id}),
        ("metrics", {"job": job.id, "points": 50}),
    )
    for number, (kind, words) in enumerate(asked):
        page.subscribe(number, kind, **words)
    page.until(lambda m: m == {"id": 1, "type": "end"})
    page.close()
    assert last() == before


def test_a_proxy_that_cuts_every_connection(
    server: Server, open_page: Callable[..., Page], submit: Submit, tmp_path: Path
) -> None:
    proxy = TcpProxy(server.port)
    job = submit(WAITER.format(flag=str(tmp_path / "enough")))
    for _ in range(4):
        page = open_page(server, proxy.port)
        page.subscribe(1, "job", job=job.id)
        page.until(lambda m: m["type"] == "job")
        proxy.cut()
        with pytest.raises((websocket.WebSocketException, OSError)):
            page.until(lambda _: False)
    (tmp_path / "enough").touch()
    page = open_page(server, proxy.port)
    page.subscribe(1, "job", job=job.id)
    page.until(lambda m: m == {"id": 1, "type": "end"})
    proxy.close()
    assert page.of(1, "job")[-1]["view"]["record"]["state"] == "SUCCEEDED"


def test_a_server_that_is_killed_comes_back_and_finds_the_jobs(
    tmp_path_factory: pytest.TempPathFactory, open_page: Callable[..., Page], tmp_path: Path
) -> None:
    server = Server(tmp_path_factory.mktemp("killed"), SUBMARINE_BACKEND="local")
    server.start()
    try:
        session = Session(Profile(backend="local", state_dir=server.scratch / "state"))
        source = WAITER.format(flag=str(tmp_path / "enough"))
        job = session.submit(*make_job(source, "kept"))
        page = open_page(server)
        page.subscribe(1, "job", job=job.id)
        page.until(lambda m: m.get("type") == "job" and m["view"]["source"] == "live")
        assert server.process is not None
        os.kill(server.process.pid, signal.SIGKILL)
        server.process.wait()
        # The index is lost as well: the job root tells of the job.
        (server.scratch / "state" / "jobs.sqlite").unlink()
        server.start()
        page = open_page(server)
        page.subscribe(1, "jobs")
        wait_for_row(page, 1, job.id, bool)
        page.subscribe(2, "job", job=job.id)
        page.until(lambda m: m.get("id") == 2 and m["view"]["source"] == "live")
        (tmp_path / "enough").touch()
        page.until(lambda m: m == {"id": 2, "type": "end"})
        assert page.of(2, "job")[-1]["view"]["record"]["state"] == "SUCCEEDED"
        wait_for_row(page, 1, job.id, succeeded)
    finally:
        assert server.stop()


def test_a_server_that_stops_says_goodbye(
    tmp_path_factory: pytest.TempPathFactory, open_page: Callable[..., Page]
) -> None:
    server = Server(tmp_path_factory.mktemp("stopped"), SUBMARINE_BACKEND="local")
    server.start()
    page = open_page(server)
    page.subscribe(1, "jobs")
    page.next()
    assert server.stop()
    opcode, data = page.socket.recv_data()
    assert opcode == websocket.ABNF.OPCODE_CLOSE
    assert int.from_bytes(data[:2], "big") == 1001
    log = server.log.read_text()
    assert "Traceback" not in log
    assert TOKEN not in log
    assert json.dumps(page.heard)
