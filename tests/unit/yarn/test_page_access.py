"""The YARN page of a job answers the application master only, and only requests of one page."""

from __future__ import annotations

import os
import socket
import urllib.error
import urllib.request
from contextlib import suppress

import pytest

from submarine_runtime.network import bind_port, peers
from submarine_runtime.yarn import PageServer
from tests.second_user import as_user, needs_root

PAGE = b"<html>digits-20261123-1a2b</html>"


@pytest.fixture
def page() -> PageServer:
    return serve(None)


def serve(master: str | None) -> PageServer:
    made = PageServer(bind_port, "127.0.0.1", master, lambda: PAGE)
    made.serve()
    return made


def read(page: PageServer) -> str:
    with urllib.request.urlopen(page.url, timeout=30) as reply:
        text: str = reply.read().decode()
    return text


def exchange(page: PageServer, data: bytes) -> bytes:
    """The response to raw bytes, as far as the server lets the client read it."""
    host, port = page.url[7:-1].split(":")
    received = b""
    with (
        socket.create_connection((host, int(port)), 30) as connection,
        # The server closes before it has read a request that is too large.
        suppress(ConnectionError),
    ):
        connection.sendall(data)
        while more := connection.recv(1 << 16):
            received += more
    return received


@needs_root
def test_another_user_of_the_node_is_refused(page: PageServer) -> None:
    said = as_user(
        f"""
        connection = http.client.HTTPConnection({page.url[7:-1]!r}, timeout=20)
        connection.request("GET", "/")
        reply = connection.getresponse()
        return reply.status, reply.read()
        """
    )
    assert said == "(403, b\"Open the job's page from its application's page on YARN.\\n\")"
    assert "digits-20261123-1a2b" in read(page)


def test_another_host_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection from another machine has no user id."""
    monkeypatch.setattr("submarine_runtime.yarn.page.peer_uid", lambda request: None)
    for master, answers in ((None, False), ("192.0.2.7", False), ("localhost", True)):
        page = serve(master)
        if answers:
            assert "<html" in read(page)
        else:
            with pytest.raises(urllib.error.HTTPError, match="403"):
                read(page)


def test_a_system_without_user_ids_shows_the_page(
    page: PageServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers, "_NETLINK", None)
    monkeypatch.setattr(peers, "_TABLES", (f"/nowhere/{os.getpid()}",))
    assert "digits-20261123-1a2b" in read(page)


def test_the_page_forbids_scripts_and_is_not_stored(page: PageServer) -> None:
    with urllib.request.urlopen(page.url, timeout=30) as reply:
        assert "default-src 'none'" in reply.headers["Content-Security-Policy"]
        assert reply.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize(
    ("request_line", "status"),
    [
        (b"GET /?from=yarn HTTP/1.1", b"200"),
        (b"HEAD / HTTP/1.1", b"200"),
        (b"POST / HTTP/1.1", b"405"),
        (b"DELETE / HTTP/1.1", b"405"),
        (b"GET /etc/passwd HTTP/1.1", b"404"),
        (b"nonsense", b"405"),
    ],
)
def test_the_page_is_read_only(page: PageServer, request_line: bytes, status: bytes) -> None:
    reply = exchange(page, request_line + b"\r\nHost: x\r\n\r\n")
    assert reply.split(b" ")[1] == status
    assert (PAGE in reply) == (status == b"200" and request_line.startswith(b"GET"))


def test_a_request_without_end_is_refused_and_the_next_is_answered(page: PageServer) -> None:
    reply = exchange(page, b"GET / HTTP/1.1\r\nX: " + b"x" * 20_000)
    assert PAGE not in reply
    assert "digits-20261123-1a2b" in read(page)
