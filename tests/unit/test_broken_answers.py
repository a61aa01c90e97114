"""An answer that breaks off is no answer: half a record, no applications, a piece of a file."""

from __future__ import annotations

import http.client
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from submarine_jobs.backends.yarn.rm import ResourceManager
from submarine_jobs.credentials import new_secret
from submarine_jobs.errors import ClusterError, UsageError
from submarine_jobs.live import AgentAddress, AgentClient
from submarine_jobs.localization import _download

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
        (b"", 0, "no record"),
        (b"[1]", 3, "no record"),
        (b"<html>", 6, "no record"),
    ],
)
def test_an_agent_that_dies_in_the_middle_of_an_answer(
    serve: Serve, body: bytes, promised: int, said: str
) -> None:
    agent = Plain(AgentAddress("127.0.0.1", serve(body, promised), new_secret("j")))
    with pytest.raises(ClusterError, match=said):
        agent.status()


def test_a_resourcemanager_that_breaks_off_has_not_said_that_there_is_nothing(serve: Serve) -> None:
    url = f"http://127.0.0.1:{serve(b'', 100)}"
    manager = ResourceManager([url], timeout=60, user="ada")
    with pytest.raises(ClusterError, match="does not answer: IncompleteRead"):
        manager.get("/apps")


def test_half_a_download_is_none(serve: Serve, tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{serve(b'half', 100)}/words.txt"
    with pytest.raises(UsageError, match="cannot be downloaded: IncompleteRead"):
        _download(url, tmp_path / "words.txt")
