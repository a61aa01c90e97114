"""Logs of real jobs by a server: listed, read by offset and time, searched; and its websocket."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from tornado.httpclient import HTTPRequest
from tornado.websocket import websocket_connect

from submarine_jobs.client import Job
from submarine_server.service import JobService
from tests.local.server.jupyter_server import API, TOKEN, Server
from tests.local.server.log_followers import TALKER, Page, counted, whole
from tests.submission import Submit
from tests.waiting import until

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
def going(submit: Submit) -> Job:
    """A job that has written all and runs on."""
    job = submit(NUMBERED + "time.sleep(600)\n")
    until(lambda: job.log(offset=-8).data[-8:] == TEXT[-8:], "the log is written")
    return job


@pytest.fixture(scope="module")
def over(submit: Submit) -> Job:
    job = submit(NUMBERED)
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
    # The task measures every second.
    found = server.until(
        path, lambda log: log["exact"] and log["times"] and log["times"][-1][0] == len(TEXT)
    )
    assert found["attempt"] == "e1-a1"
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


def test_a_page_of_both_streams_is_in_order_of_time(server: Server, either: Job) -> None:
    streams = {"worker:0/e1-a1/stdout": TEXT, "worker:0/e1-a1/stderr": b"warned\n"}
    # The task measures every second.
    for stream, data in (("stdout", TEXT), ("stderr", b"warned\n")):
        server.until(
            f"jobs/{either.id}/log/times?task=worker:0&stream={stream}",
            lambda log, data=data: log["times"] and log["times"][-1][0] == len(data),
        )
    path = f"jobs/{either.id}/log/page"
    at = dict.fromkeys(streams, 0)
    page = server.call("POST", path, {"at": at, "end": True, "limit": 1000}).json
    times = [time for *_, time in page["order"]]
    assert times == sorted(times)
    assert times[0] > 0
    for log, data in zip(page["logs"], streams.values(), strict=True):
        part = base64.b64decode(log["data"])
        assert data[log["offset"] :] == part
        assert log["length"] == len(data)
        assert log["at_line"] == (data[: log["offset"]][-1:] in (b"", b"\n"))
    assert sum(len(base64.b64decode(log["data"])) for log in page["logs"]) == 1000
    whole = dict.fromkeys(streams, b"")
    while any(at[name] < len(data) for name, data in streams.items()):
        page = server.call("POST", path, {"at": at, "limit": 100_000}).json
        for name, log in zip(streams, page["logs"], strict=True):
            assert log["offset"] == at[name]
            whole[name] += base64.b64decode(log["data"])
            at[name] = len(whole[name])
    assert whole == streams
    for body in ({}, {"at": {"../x": 0}}, {"at": {"worker:0/e1-a1/stdout": -1}}, [1], b"no"):
        assert server.call("POST", path, body).status == 400, body


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
    page = (f"jobs/{over.id}/log/page", {"at": {"worker:0/e1-a1/stdout": 0}})
    assert server.call("POST", *page, token=None).status == 403
    assert server.call("POST", *page, Origin="http://evil.example").status == 403


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
    server: Server, submit: Submit, tmp_path: Path
) -> None:
    job = submit(TALKER.format(stop=str(tmp_path / "stop")))
    page = Page(cast("JobService", None), job.id)

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


def test_a_search_ends_with_its_page(server: Server, over: Job) -> None:
    path = f"{API}jobs/{over.id}/log/search?task=worker:0&attempt=e1-a1&q=step&limit=5000"
    for _ in range(40):
        with socket.create_connection(("127.0.0.1", server.port), 5) as connection:
            words = f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: token {TOKEN}\r\n\r\n"
            connection.sendall(words.encode())
    *hits, _ = lines(server.call("GET", f"{path}&from=0").data)
    assert len(hits) == 5000


def test_an_invalid_subscription_is_reported_and_ended(server: Server, over: Job) -> None:
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
        told: set[int] = set()
        while len(told) < len(asked):
            message = json.loads(await asyncio.wait_for(channel.read_message(), 30))
            if message["type"] != "hello":
                assert message["type"] == "error", message
                told.add(message["id"])
        await closed(channel)

    asyncio.run(main())
