"""Malformed messages to the link, the viewers' and agents' ports and Zeppelin's socket.

The sender holds the token. Each message ends its connection at most; the processes go on. The
messages are random with a fixed seed; a failure names it.
"""

from __future__ import annotations

import json
import os
import random
import socket
import ssl
import struct
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from submarine_jobs.access import tls_context
from submarine_runtime.protocol import State, check_agent_line, wire
from submarine_zeppelin.installation import start_trial_process
from submarine_zeppelin.interface import ENTRIES
from tests.configurations import make_role
from tests.local.coordinator.gang_processes import GangProcesses
from tests.waiting import until

#: Seconds of one short run, and of a long one; there are three of each.
SHORT, LONG = 2.0, 200.0
LENGTHS = [pytest.param(SHORT, id="short"), pytest.param(LONG, id="long", marks=pytest.mark.full)]
SEED = 20261123
#: MiB by which a process may grow.
GROWTH = 48
PROGRAM = """
import os, time
while not os.path.exists({go!r}):
    time.sleep(0.05)
"""
#: One valid line of each type that an agent sends to a coordinator, and what may be added to it.
LINES: dict[str, dict[str, Any]] = {
    "heartbeat": {"n": 1, "memory_now": 1.5, "cpu_seconds": 2, "progress": 0.5},
    "register": {"seat": "worker-7.1", "nonce": "00", "host": "h", "ports": [1], "agent_port": 1},
    "state": {"state": "ended", "epoch": 1, "attempt": 1, "logs": {"stdout": 1}, "outputs": []},
    "ports": {"ports": [1, 2]},
    "event": {"kind": "warning", "detail": "x", "data": {}},
    "saved": {"id": "1", "error": "x"},
    "left": {"logs": {}, "outputs": [], "missing": []},
}
#: What no line of the link is, whatever it means.
NO_LINES = [
    b"[" * 100_000,
    b'{"a":' * 5_000 + b"1" + b"}" * 5_000,
    b'{"type":"heartbeat","n":' + b"9" * 5_000 + b"}",
    b'{"type":"heartbeat","n":1e999}',
    b'{"type":"heartbeat","n":NaN}',
    b'{"type":"heartbeat"}',
    b'{"type":"register"}',
    b"[1]",
    b"null",
    b"\xff\xfe",
    b'{"type":"heartbeat","n":1',
    b'{"n":1}',
    b"",
    b"x" * (1 << 20) + b"x",
]


def junk(rng: random.Random, depth: int = 3) -> Any:
    """A random JSON value."""
    kind = rng.randrange(8 if depth else 6)
    if kind == 0:
        return rng.choice([None, True, False, "", "\ud800", "x" * 3000, "\x00", "🦑"])
    if kind == 1:
        return rng.choice([0, -1, 1 << 62, 1 << 31, 65536, 0.5, -1e300])
    if kind < 6:
        return "".join(chr(rng.randrange(32, 0x2000)) for _ in range(rng.randrange(20)))
    if kind == 6:
        return [junk(rng, depth - 1) for _ in range(rng.randrange(4))]
    return {str(junk(rng, 0)): junk(rng, depth - 1) for _ in range(rng.randrange(4))}


def malformed(rng: random.Random) -> bytes:
    """A line that an agent never sends."""
    while rng.random() < 0.7:
        kind = rng.choice(list(LINES))
        line = {"type": kind, **LINES[kind]}
        name = rng.choice(list(line))
        if rng.random() < 0.3:
            del line[name]
        else:
            line[name] = junk(rng)
        try:
            check_agent_line(line)
        except ValueError:
            return json.dumps(line).encode()
    return rng.choice(NO_LINES)


class Target:
    """A port that expects TLS with the job's certificate, and the token."""

    def __init__(self, gang: GangProcesses, port: int) -> None:
        self._token, self.port = gang.secret.token, port
        self._context = tls_context(gang.secret)

    def connect(self) -> ssl.SSLSocket:
        plain = socket.create_connection(("127.0.0.1", self.port), timeout=20)
        return self._context.wrap_socket(plain)

    def request(self, method: str, target: str, body: bytes = b"", *headers: str) -> bytes:
        """Send a request as it stands, and read the beginning of the answer."""
        with suppress(OSError), self.connect() as link:
            lines = [f"{method} {target} HTTP/1.1", f"Authorization: Bearer {self._token}"]
            head = "\r\n".join([*lines, *headers, "", ""])
            link.sendall(head.encode("utf-8", "replace") + body)
            return link.recv(1000)
        return b""

    def link(self) -> ssl.SSLSocket:
        link = self.connect()
        link.sendall(
            f"GET {wire.LINK} HTTP/1.1\r\nAuthorization: Bearer {self._token}\r\n"
            "Upgrade: submarine-link\r\n\r\n".encode()
        )
        assert b"101" in link.recv(1000)
        return link

    def interrupt(self, rng: random.Random) -> None:
        """Send what is no TLS, and reset the connection."""
        plain = socket.create_connection(("127.0.0.1", self.port), timeout=20)
        with suppress(OSError):
            plain.sendall(rng.randbytes(rng.randrange(400)))
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        plain.close()

    def ask(self, rng: random.Random) -> None:
        """A request of a viewer with a part that makes no sense."""
        paths = [wire.STATUS, wire.LOG, wire.TIMES, wire.STREAM, wire.TUNNEL, "/", "//[", "*"]
        query = "&".join(
            f"{name}={rng.choice(['', '-1', '9' * 30, '9' * 5000, '%ff', 'worker:0', '../x'])}"
            for name in rng.sample(
                ["task", "attempt", "stream", "offset", "limit", "at", "tail"], 3
            )
        )
        if rng.random() < 0.5:
            self.request("GET", f"{rng.choice(paths)}?{query}")
            return
        post = [wire.CANCEL, wire.SAVE, wire.LOOK, wire.RENEW, wire.STAND_DOWN, "/"]
        body = rng.choice([b"[" * 4000, b"[]", b"{", b"\xff", b'{"a":' * 600, b"9" * 4000])
        length = rng.choice([str(len(body)), "-1", "x", "²", "9" * 30, str(1 << 40)])
        if length == "x" or rng.random() < 0.7:
            length = str(len(body))
        self.request(
            rng.choice(["POST", "PUT", "🦑"]), rng.choice(post), body, f"Content-Length: {length}"
        )


def repeat(seconds: float, attack: Callable[[random.Random], None]) -> None:
    rng, deadline, number = random.Random(SEED), time.monotonic() + seconds, 0
    while time.monotonic() < deadline or number < 30:
        number += 1
        attack(rng)


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GangProcesses]:
    gang = GangProcesses(tmp_path_factory.mktemp("malformed"))
    gang.prepare(PROGRAM.format(go=str(gang.root / "go")), [make_role("worker", 2)])
    gang.start()
    try:
        gang.wait_for_event("task", "running", count=2)
        yield gang
    finally:
        gang.stop_all()


@pytest.fixture
def unharmed(job: GangProcesses) -> Iterator[None]:
    """The job's processes are those of before, have not grown much, and no task was restarted."""
    # On a busy machine one look at all processes may miss one that is there.
    until(lambda: len(_processes(job)) == 3)
    before = {one: one.memory_info().rss for one in _processes(job)}
    yield
    until(lambda: set(_processes(job)) == set(before), seconds=30)
    grown = {one: (one.memory_info().rss - rss) / 2**20 for one, rss in before.items()}
    assert max(grown.values()) < GROWTH, grown
    assert not [event for event in job.events() if event["kind"] in ("restart", "verdict")]
    assert registered(job).keys() == {"worker-0.1", "worker-1.1"}


def _processes(gang: GangProcesses) -> list[psutil.Process]:
    return [*gang.processes("coordinator"), *gang.processes("agent")]


def registered(gang: GangProcesses) -> dict[str, dict[str, Any]]:
    """Seat -> the first line of its agent, from the coordinator's journal."""
    lines = [json.loads(line) for line in (gang.scratch / "journal.jsonl").read_text().splitlines()]
    agents = [line for line in lines if line.get("type") == "register"]
    return {line["seat"]: line for line in reversed(agents)}


@pytest.mark.parametrize("seconds", LENGTHS)
def test_malformed_lines_on_the_link(job: GangProcesses, unharmed: None, seconds: float) -> None:
    port = json.loads((job.job_dir / "live.json").read_text())["port"]
    target, agents = Target(job, port), list(registered(job).values())

    def attack(rng: random.Random) -> None:
        way = rng.randrange(4)
        if way == 0:
            target.interrupt(rng)
        elif way == 1:
            target.ask(rng)
        else:
            with suppress(OSError), target.link() as link:
                if way == 2:  # with the seat and the nonce of a real agent
                    line = {key: value for key, value in rng.choice(agents).items() if key != "t"}
                    link.sendall(json.dumps(line).encode() + b"\n")
                    assert b"welcome" in link.recv(1000)
                for _ in range(rng.randrange(1, 4)):
                    link.sendall(malformed(rng) + b"\n")
                link.settimeout(20)
                while link.recv(1000):  # the coordinator closes the connection
                    pass

    repeat(seconds, attack)
    until(lambda: b" 200 " in target.request("GET", wire.STATUS))


@pytest.mark.parametrize("seconds", LENGTHS)
def test_malformed_requests_to_an_agent(job: GangProcesses, unharmed: None, seconds: float) -> None:
    agents = [Target(job, line["agent_port"]) for line in registered(job).values()]

    def attack(rng: random.Random) -> None:
        target = rng.choice(agents)
        target.interrupt(rng) if rng.random() < 0.3 else target.ask(rng)

    repeat(seconds, attack)
    until(lambda: all(b" 200 " in agent.request("GET", wire.STATUS) for agent in agents))


def test_the_job_that_received_them_ends_well(job: GangProcesses) -> None:
    (job.root / "go").touch()
    record = job.wait()
    assert (record.state, record.epoch, record.missing) == (State.SUCCEEDED, 1, [])
    assert "malformed message" in (job.root / "coordinator.log").read_text()


def thrift_value(rng: random.Random, depth: int) -> tuple[int, bytes]:
    """The type and the bytes of a random value, often with a size that is not its own."""
    kind = rng.choice([2, 3, 4, 6, 8, 10, 11, 11, 12, 13, 14, 15, rng.randrange(256)])
    sizes = {2: 1, 3: 1, 4: 8, 6: 2, 8: 4, 10: 8}
    if kind in sizes:
        return kind, rng.randbytes(sizes[kind])
    many = rng.choice([-1, 1 << 30, (1 << 31) - 1, 1 << 20, 70_000]) if rng.random() < 0.3 else None
    if kind == 12 and depth:
        return kind, b"".join(thrift_field(rng, depth - 1) for _ in range(2)) + b"\0"
    if kind in (13, 14, 15) and depth:
        types = bytes(rng.choice([0, 1, 2, 11, 12, 15]) for _ in range(2 if kind == 13 else 1))
        count = rng.randrange(3) if many is None else many
        return kind, types + struct.pack(">i", count) + rng.randbytes(rng.randrange(30))
    text = rng.choice([b"", b"{" * 3000, b'{"a":' * 3000, b"\xff\xfe", b"x" * rng.randrange(5000)])
    return kind, struct.pack(">i", len(text) if many is None else many) + text


def thrift_field(rng: random.Random, depth: int) -> bytes:
    kind, data = thrift_value(rng, depth)
    return struct.pack(">BH", kind, rng.randrange(1, 8)) + data


def thrift_call(rng: random.Random) -> bytes:
    """A call with random arguments; not one that ends the process by its meaning."""
    names = ["interpret", "cancel", "completion", "getProgress", "init", "open", "getStatus", "x"]
    name = rng.choice(names).encode()
    head = struct.pack(">II", 0x80010001, len(name)) + name + struct.pack(">i", rng.randrange(9))
    body = b"".join(thrift_field(rng, 3) for _ in range(rng.randrange(4))) + b"\0"
    call = bytearray(head + body)
    for _ in range(rng.choice([0, 0, 1, 3])):
        call[rng.randrange(len(head), len(call))] = rng.randrange(256)
    return bytes(call) if rng.random() < 0.9 else rng.randbytes(rng.randrange(200))


@pytest.mark.parametrize("seconds", LENGTHS)
def test_malformed_calls_of_zeppelin(tmp_path: Path, seconds: float) -> None:
    environ = {**os.environ, "ZEPPELIN_LOG_DIR": str(tmp_path), "HOME": str(tmp_path)}
    with start_trial_process([sys.executable, "-m", "submarine_zeppelin"], environ) as started:
        process = psutil.Process(started.pid)
        listening = [one for one in process.net_connections() if one.status == "LISTEN"]
        started.client.createInterpreter("g", "s", ENTRIES[0].class_name, {}, "anonymous")
        before = process.memory_info().rss

        def attack(rng: random.Random) -> None:
            with (
                suppress(OSError),
                socket.create_connection(("127.0.0.1", listening[0].laddr.port), 20) as link,
            ):
                for _ in range(rng.randrange(1, 4)):
                    link.sendall(thrift_call(rng))
                link.shutdown(socket.SHUT_WR)
                while link.recv(4096):
                    pass

        repeat(seconds, attack)
        assert started.client.getFormType("s", ENTRIES[0].class_name) == "NATIVE"
        assert (process.memory_info().rss - before) / 2**20 < GROWTH
