"""Idle connections on every port of a job: its owner connects all the same."""

from __future__ import annotations

import contextlib
import http.client
import http.server
import json
import socket
import ssl
import threading
import time
from collections.abc import Iterator

import pytest

from submarine_jobs.access import AgentAddress, AgentClient, JobSecret, create_secret, tls_context
from submarine_kernel.notebook_server.container.tls_listener import MAX_CONNECTIONS, TlsListener
from submarine_runtime.coordinator.coordinator import MIN_UNAUTHENTICATED
from submarine_runtime.network import server_context
from submarine_runtime.protocol import State
from tests.configurations import make_role
from tests.local.agent.agent_processes import AgentProcesses
from tests.local.agent.test_live import WAITER, release
from tests.local.coordinator.gang_processes import GangProcesses
from tests.streams import read_stream
from tests.waiting import until

IDLE = 40
#: How far an idle connection goes before it is silent.
STAGES = ("connected", "half a ClientHello", "TLS without a token", "half a request")
OWNER = "127.0.0.1"


WORKERS = [make_role("worker", 2)]


def hello(secret: JobSecret) -> bytes:
    """What a client sends first."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = tls_context(secret).wrap_bio(incoming, outgoing)
    with contextlib.suppress(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


def connect(port: int, source: str, stage: str, secret: JobSecret) -> socket.socket:
    """A connection that is idle from now on."""
    made = socket.create_connection((OWNER, port), 30, (source, 0))
    if stage == "half a ClientHello":
        first = hello(secret)
        made.sendall(first[: len(first) // 2])
    elif stage != "connected":
        made = tls_context(secret).wrap_socket(made)
        if stage == "half a request":
            made.sendall(b"GET /v1/status HTTP/1.1\r\nHost: x\r\n")
    return made


@contextlib.contextmanager
def idle_connections(
    port: int, source: str, stage: str, secret: JobSecret, count: int = IDLE
) -> Iterator[list[socket.socket]]:
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(connect(port, source, stage, secret)) for _ in range(count)]


def is_open(connection: socket.socket) -> bool:
    connection.settimeout(0.05)
    try:
        while connection.recv(1000):
            pass
    except TimeoutError:
        return True
    except OSError:
        return False
    return False


def test_the_owner_reaches_the_agent(agents: AgentProcesses) -> None:
    agent = agents.start(WAITER)
    agents.wait_for_log(b"up\n")
    client = agents.client()
    port = json.loads((agents.job_dir / "live.json").read_text())["port"]
    stream = read_stream(client)
    assert next(iter(stream))["type"] == "status"
    for source in ("127.0.0.2", OWNER):
        for stage in STAGES:
            with idle_connections(port, source, stage, agents.secret) as idle:
                began = time.monotonic()
                assert client.status().state is State.RUNNING
                assert time.monotonic() - began < 5.0, (source, stage)
                # New ones have replaced the oldest, and none was refused.
                assert not is_open(idle[0])
                assert is_open(idle[-1])
    release(agents)
    # What had shown the token was not replaced.
    assert [line["type"] for line in stream][-1] == "end"
    agents.finish(agent)


def test_the_owner_reaches_the_coordinator(gang: GangProcesses) -> None:
    go = gang.root / "go"
    gang.prepare(
        f"import os, time\nwhile not os.path.exists({str(go)!r}): time.sleep(0.05)", WORKERS
    )
    gang.start()
    gang.wait_for_state("RUNNING")
    live = json.loads((gang.job_dir / "live.json").read_text())
    client = AgentClient(AgentAddress(live["host"], live["port"], gang.secret))
    for stage in ("connected", "TLS without a token"):
        with idle_connections(live["port"], OWNER, stage, gang.secret, MIN_UNAUTHENTICATED) as idle:
            assert client.status().state is State.RUNNING
            assert not is_open(idle[0])
            assert is_open(idle[-1])
    go.touch()
    assert gang.wait().state is State.SUCCEEDED


class _Application(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_: object) -> None:
        pass


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Connections are cut on purpose."""


@pytest.fixture
def listener() -> Iterator[tuple[int, JobSecret]]:
    secret = create_secret("listener")
    context = server_context({"certificate": secret.certificate, "key": secret.key})
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with _Server(("127.0.0.1", 0), _Application) as inside:
        threading.Thread(target=inside.serve_forever, daemon=True).start()
        listener = TlsListener("127.0.0.1", port, context, inside.server_address[1])
        yield port, secret
        listener.close()
        inside.shutdown()


def get(port: int, secret: JobSecret, source: str = OWNER) -> http.client.HTTPSConnection:
    """A connection that has been answered and stays open."""
    connection = http.client.HTTPSConnection(
        OWNER, port, timeout=5, source_address=(source, 0), context=tls_context(secret)
    )
    connection.request("GET", "/")
    assert connection.getresponse().read() == b"ok"
    return connection


def test_the_owner_reaches_the_application_of_a_container(listener: tuple[int, JobSecret]) -> None:
    port, secret = listener
    for source in ("127.0.0.2", OWNER):
        for stage in STAGES:
            with idle_connections(port, source, stage, secret) as idle:
                get(port, secret).close()
                if stage != "half a request":
                    assert not is_open(idle[0])
                assert is_open(idle[-1])


def test_connections_that_were_answered_give_way_when_they_are_idle(
    listener: tuple[int, JobSecret],
) -> None:
    port, secret = listener
    used = get(port, secret)
    kept = []
    for number in range(MAX_CONNECTIONS + 2):
        kept.append(get(port, secret))
        if number % 20 == 0:
            used.request("GET", "/")
            assert used.getresponse().read() == b"ok"
    used.request("GET", "/")
    assert used.getresponse().read() == b"ok"
    assert not is_open(kept[0].sock)
    assert is_open(kept[-1].sock)
    for connection in (used, *kept):
        connection.close()


def test_what_is_silent_for_long_does_not_stay(
    listener: tuple[int, JobSecret], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "submarine_kernel.notebook_server.container.tls_listener.SILENT_SECONDS", 0.2
    )
    port, secret = listener
    for stage in STAGES[:3]:
        with connect(port, OWNER, stage, secret) as idle:
            until(lambda: not is_open(idle))
