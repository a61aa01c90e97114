"""An answer that breaks off is no answer: half a record, no applications, a piece of a file."""

from __future__ import annotations

import http.client
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from submarine_jobs.access import AgentAddress, AgentClient, create_secret
from submarine_jobs.backends.yarn.cluster import ResourceManager
from submarine_jobs.errors import ClusterError, UsageError
from submarine_jobs.inputs.localization import _download
from submarine_runtime.cluster_http import open_url, simple_access

Serve = Callable[[bytes, int], int]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts a server that promises so many bytes, sends these, and goes away; its port."""
    listeners: list[socket.socket] = []

    def start(body: bytes, promised: int) -> int:
        listener = socket.create_server(("127.0.0.1", 0))
        listeners.append(listener)
        threading.Thread(target=_answer, args=(listener, body, promised), daemon=True).start()
        return int(listener.getsockname()[1])

    yield start
    for listener in listeners:
        listener.close()


def _answer(listener: socket.socket, body: bytes, promised: int) -> None:
    with suppress(OSError):
        while True:
            connection, _ = listener.accept()
            with connection:
                connection.settimeout(60)
                connection.recv(1 << 16)
                head = f"HTTP/1.1 200 OK\r\nContent-Length: {promised}\r\n\r\n"
                connection.sendall(head.encode() + body)


class Plain(AgentClient):
    def _connect(self, timeout: float) -> http.client.HTTPConnection:  # type: ignore[override]
        return http.client.HTTPConnection(self._address.host, self._address.port, timeout=timeout)


@pytest.mark.parametrize(
    ("body", "promised", "said"),
    [
        (b"", 100, "cannot be reached"),
        (b'{"job_id"', 100, "cannot be reached"),
        (b"", 0, "record of a job is invalid"),
        (b"[1]", 3, "record of a job is invalid"),
        (b"<html>", 6, "record of a job is invalid"),
    ],
)
def test_an_agent_that_dies_in_the_middle_of_an_answer(
    serve: Serve, body: bytes, promised: int, said: str
) -> None:
    agent = Plain(AgentAddress("127.0.0.1", serve(body, promised), create_secret("j")))
    with pytest.raises(ClusterError, match=said):
        agent.status()


def _of_agent(port: int) -> None:
    Plain(AgentAddress("127.0.0.1", port, create_secret("j"))).status()


def _of_manager(port: int) -> None:
    ResourceManager([f"http://127.0.0.1:{port}"], timeout=3, access=simple_access("ada")).get(
        "/apps"
    )


def _of_webhdfs(port: int) -> None:
    with open_url("GET", f"http://127.0.0.1:{port}/webhdfs/v1/a?op=OPEN", 60) as answer:
        answer.read(10)
        raise ClusterError("the reader has failed")


@pytest.mark.slow
@pytest.mark.parametrize("ask", [_of_agent, _of_manager, _of_webhdfs])
def test_the_connection_of_an_answer_that_breaks_off_is_closed_at_once(
    ask: Callable[[int], None],
) -> None:
    """Not when the exception is collected, which may hold the answer for as long as it likes."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ended: list[bytes] = []

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.settimeout(30)
                connection.recv(1 << 16)
                head = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\nConnection: close\r\n\r\n"
                connection.sendall(head + b"x" * 20)
                connection.shutdown(socket.SHUT_WR)
                with suppress(TimeoutError):
                    ended.append(connection.recv(1))

        server = threading.Thread(target=answer)
        server.start()
        with pytest.raises(ClusterError) as held:
            ask(listener.getsockname()[1])
        server.join(20)
        assert ended == [b""], held.value
        server.join()


def test_a_resourcemanager_that_breaks_off_has_not_said_that_there_is_nothing(serve: Serve) -> None:
    url = f"http://127.0.0.1:{serve(b'', 100)}"
    manager = ResourceManager([url], timeout=60, access=simple_access("ada"))
    with pytest.raises(ClusterError, match="does not answer: IncompleteRead"):
        manager.get("/apps")


def test_half_a_download_is_none(serve: Serve, tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{serve(b'half', 100)}/words.txt"
    with pytest.raises(UsageError, match="cannot be downloaded: IncompleteRead"):
        _download(url, tmp_path / "words.txt")
