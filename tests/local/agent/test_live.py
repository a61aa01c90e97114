"""The agent's port: what a client reads, and what an unauthenticated peer does not."""

from __future__ import annotations

import base64
import json
import re
import socket
import ssl
import threading
import time
from typing import Any

import pytest

from submarine_jobs.access import StreamBrokenError, tls_context
from submarine_runtime.protocol import State
from tests.local.agent.agent_processes import AgentProcesses
from tests.streams import read_stream
from tests.waiting import until

WAITER = (
    "import os, time\nprint('up', flush=True)\nwhile not os.path.exists('go'): time.sleep(0.01)\n"
)


def release(agents: AgentProcesses) -> None:
    (agents.scratch() / "program/go").touch()


def connect(agents: AgentProcesses) -> ssl.SSLSocket:
    agents.client()
    live = json.loads((agents.job_dir / "live.json").read_text())
    plain = socket.create_connection((live["host"], live["port"]), 10)
    return tls_context(agents.secret).wrap_socket(plain)


def ask(agents: AgentProcesses, request: bytes) -> bytes:
    answer = b""
    with connect(agents) as connection:
        try:
            connection.sendall(request)
            while data := connection.recv(1 << 16):
                answer += data
        except OSError:
            pass
    return answer


def test_status_log_and_stream(agents: AgentProcesses) -> None:
    agent = agents.start(WAITER + "print('done')\nraise SystemExit(3)\n")
    agents.wait_for_log(b"up")
    client = agents.client()
    record = client.status()
    assert record.state is State.RUNNING
    assert record.tasks[0].pid == agent.pid
    chunk, length = client.log("worker:0", "stdout", 1, 10)
    assert (chunk.offset, chunk.data, length) == (1, b"p\n", 3)
    assert client.log("worker:0", "stdout", -2)[0].data == b"p\n"
    assert client.log("worker:0", "stdout", 99)[0].data == b""
    lines: list[dict[str, Any]] = []
    follower = threading.Thread(target=lambda: lines.extend(read_stream(client)))
    follower.start()
    until(lambda: any(line["type"] == "log" for line in lines))
    release(agents)
    agents.finish(agent)
    follower.join(60)
    assert lines[0]["type"] == "status"
    assert "events" not in lines[0]["record"] or lines[0]["record"]["events"] == []
    events = [line["event"]["seq"] for line in lines if line["type"] == "event"]
    assert events == list(range(len(events)))
    log = [line for line in lines if line["type"] == "log" and line["stream"] == "stdout"]
    assert b"".join(base64.b64decode(line["data"]) for line in log) == b"up\ndone\n"
    assert lines[-1]["type"] == "end"
    assert lines[-1]["record"] == json.loads((agents.job_dir / "record.json").read_text())
    assert len(lines[-1]["record"]["events"]) == len(events)


def test_new_output_is_there_at_once(agents: AgentProcesses) -> None:
    source = (
        "import time\n"
        "for _ in range(20):\n    time.sleep(0.2)\n    print(time.time(), flush=True)\n"
    )
    agent = agents.start(source)
    delays = []
    for line in read_stream(agents.client()):
        if line["type"] == "log":
            text = base64.b64decode(line["data"]).split()
            delays.append(time.time() - float(text[-1]))
    agents.finish(agent)
    delays.sort()
    # Far less than the second that lies between two rounds of shipping, on a busy machine too.
    assert delays[len(delays) // 2] < 0.5, delays


def test_a_follower_can_come_in_the_middle(agents: AgentProcesses) -> None:
    agent = agents.start(WAITER)
    agents.wait_for_log(b"up\n")
    stream = read_stream(agents.client(), 99, stdout=2)
    first = next(line for line in stream if line["type"] == "log")
    assert (first["offset"], base64.b64decode(first["data"])) == (2, b"\n")
    release(agents)
    assert [line["type"] for line in stream][-1] == "end"
    agents.finish(agent)


def test_a_follower_can_begin_near_the_end(agents: AgentProcesses) -> None:
    agent = agents.start("print('a' * 5000, flush=True)\n" + WAITER)
    agents.wait_for_log(b"up\n")
    stream = read_stream(agents.client(), 99, stdout=-5, stderr=-5)
    first = next(line for line in stream if line["type"] == "log")
    assert (first["offset"], base64.b64decode(first["data"])) == (4999, b"a\nup\n")
    release(agents)
    assert [line["type"] for line in stream][-1] == "end"
    agents.finish(agent)


REQUESTS = [
    b"GET /v1/status HTTP/1.1\r\n\r\n",
    b"GET /v1/status HTTP/1.1\r\nAuthorization: Bearer nonsense\r\n\r\n",
    b"GET /v1/status HTTP/1.1\r\nAuthorization: Basic TOKEN\r\n\r\n",
    b"GET /v1/status HTTP/1.1\r\nAuthorization: Bearer TOKENx\r\n\r\n",
    b"GET /v1/status HTTP/1.1\r\nAuthorization: Bearer \xff\xfe\r\n\r\n",
    b"GET /v1/stream HTTP/1.1\r\n\r\n",
    b"GET /nothing HTTP/1.1\r\n\r\n",
    b"POST /v1/cancel HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}",
    b"POST /v1/cancel HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n{}",
    b"BREW /v1/status HTTP/1.1\r\n\r\n",
    b"HEAD /v1/status HTTP/1.1\r\n\r\n",
]


def test_unauthenticated_requests_get_401_and_nothing_else(agents: AgentProcesses) -> None:
    agent = agents.start(WAITER)
    for request in REQUESTS:
        answer = ask(agents, request.replace(b"TOKENx", agents.secret.token.encode() + b"x"))
        head, _, body = answer.partition(b"\r\n\r\n")
        assert re.match(rb"HTTP/1\.0 401 ", head), (request, answer)
        assert body == b""
        assert b"hidden-name" not in head
    assert agents.client().status().state is State.RUNNING
    release(agents)
    agents.finish(agent)


MALFORMED = [
    (b"\r\n", 0),
    (b"GET\r\n\r\n", 0),
    (b"GET / HTTP/9.9\r\n\r\n", 0),
    (b"GET /" + b"a" * 70000 + b" HTTP/1.1\r\n\r\n", 414),
    (b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 200 + b"\r\n", 431),
    (b"GET / HTTP/1.1\r\nA: " + b"b" * 70000 + b"\r\n\r\n", 431),
    (b"GET /v1/log?stream=nothing HTTP/1.1\r\nAUTH\r\n\r\n", 404),
    (b"GET /v1/log?stream=stdout&task=ps:1 HTTP/1.1\r\nAUTH\r\n\r\n", 404),
    (b"GET /v1/log?stream=../../secret.json HTTP/1.1\r\nAUTH\r\n\r\n", 404),
    (b"GET /v1/log?stream=stdout&offset=x HTTP/1.1\r\nAUTH\r\n\r\n", 400),
    (b"GET /v1/log?" + b"a=b&" * 50 + b" HTTP/1.1\r\nAUTH\r\n\r\n", 400),
    (b"GET /v1/stream?events=x HTTP/1.1\r\nAUTH\r\n\r\n", 400),
    (b"GET /v1/../secret.json HTTP/1.1\r\nAUTH\r\n\r\n", 404),
    (b"BREW / HTTP/1.1\r\nAUTH\r\n\r\n", 501),
    (b"POST /v1/status HTTP/1.1\r\nAUTH\r\n\r\n", 404),
    (b"POST /v1/cancel HTTP/1.1\r\nAUTH\r\n\r\n", 411),
    (b"POST /v1/cancel HTTP/1.1\r\nAUTH\r\nContent-Length: -1\r\n\r\n", 411),
    (b"POST /v1/cancel HTTP/1.1\r\nAUTH\r\nContent-Length: 999999999\r\n\r\n", 413),
    (b"POST /v1/cancel HTTP/1.1\r\nAUTH\r\nContent-Length: 2\r\n\r\n[]", 400),
    (b"POST /v1/cancel HTTP/1.1\r\nAUTH\r\nContent-Length: 3\r\n\r\n{x}", 400),
]


def test_malformed_requests(agents: AgentProcesses) -> None:
    agent = agents.start(WAITER)
    agents.client()
    authorisation = f"Authorization: Bearer {agents.secret.token}".encode()
    for request, code in MALFORMED:
        answer = ask(agents, request.replace(b"AUTH", authorisation))
        if code:
            assert answer.startswith(b"HTTP/1.0 %d " % code), (request[:60], answer[:60])
        assert answer.partition(b"\r\n\r\n")[2] == b""
    assert agents.client().status().state is State.RUNNING
    release(agents)
    agents.finish(agent)
    assert agents.record().state is State.SUCCEEDED


def test_old_tls_and_plain_text_are_refused(agents: AgentProcesses) -> None:
    agent = agents.start(WAITER)
    agents.client()
    live = json.loads((agents.job_dir / "live.json").read_text())
    with socket.create_connection((live["host"], live["port"]), 10) as plain:
        plain.sendall(b"GET /v1/status HTTP/1.1\r\n\r\n")
        assert b"HTTP" not in plain.recv(100)
    with connect(agents) as connection:
        assert connection.version() in ("TLSv1.2", "TLSv1.3")
    release(agents)
    agents.finish(agent)


def test_a_silent_unauthenticated_connection_is_closed(agents: AgentProcesses) -> None:
    agent = agents.start(WAITER)
    with connect(agents) as connection:
        connection.settimeout(1)
        assert until(lambda: shown_out(connection))
    release(agents)
    agents.finish(agent)


def shown_out(connection: ssl.SSLSocket) -> bool:
    """Whether a connection that says next to nothing has been closed by the other side."""
    try:
        connection.sendall(b"G")
        return connection.recv(1) == b""
    except TimeoutError:
        return False
    except OSError:
        return True


def test_a_slow_reader_is_sent_on_and_costs_no_memory(agents: AgentProcesses) -> None:
    source = WAITER + "for _ in range(400): print('x' * 250000)\nwhile True: time.sleep(0.1)"
    agent = agents.start(source)
    agents.wait_for_log(b"up\n")
    stream = read_stream(agents.client())
    assert next(stream)["type"] == "status"
    release(agents)
    log = agents.scratch() / "worker-0.stdout.log"
    until(lambda: log.stat().st_size > 100_000_000)
    time.sleep(5)  # we do not read meanwhile
    with open(f"/proc/{agent.pid}/status") as file:
        peak = int(next(line for line in file if line.startswith("VmHWM")).split()[1])
    assert peak < 60 << 10, f"{peak} kB"
    position, skipped = 0, 0
    for line in stream:
        if line["type"] not in ("log", "skip") or line["stream"] != "stdout":
            continue
        assert line["offset"] == position
        if line["type"] == "skip":
            skipped += line["to"] - position
            position = line["to"]
        else:
            position += len(base64.b64decode(line["data"]))
        if position > 100_000_000:
            break
    assert skipped > 50_000_000
    agents.client().cancel("", "")
    agents.finish(agent)


@pytest.mark.parametrize("followers", [20])
def test_followers_are_bounded(agents: AgentProcesses, followers: int) -> None:
    agent = agents.start(WAITER)
    agents.wait_for_log(b"up\n")
    client = agents.client()
    streams = [read_stream(client) for _ in range(followers)]
    for stream in streams[:16]:
        assert next(stream)["type"] == "status"
    for stream in streams[16:]:
        with pytest.raises(StreamBrokenError, match="503"):
            next(stream)
    release(agents)
    agents.finish(agent)
    for stream in streams:
        stream.close()
