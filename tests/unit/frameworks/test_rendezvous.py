"""The rendezvous, asked as gloo's store in Horovod asks: PUT, GET until it is there, DELETE."""

from __future__ import annotations

import http.client
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from submarine_runtime.frameworks.helpers.rendezvous import MAX_AT_ONCE, MAX_VALUE, Server, Store


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server("127.0.0.1", 0, {"global": 2, "local_worker-0": 1})
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield made
    made.shutdown()
    made.server_close()
    thread.join()


def ask(server: Server, method: str, path: str, body: bytes | None = None) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=5)
    try:
        connection.request(method, path, body)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def wait_for(server: Server, path: str, seconds: float = 5) -> bytes:
    """What the store's ``wait`` does: ask every 10 ms while the answer is 404."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        code, body = ask(server, "GET", path)
        if code == 200:
            return body
        assert code == 404
        time.sleep(0.01)
    raise AssertionError(f"{path} never came")


def test_two_processes_meet(server: Server) -> None:
    met: dict[int, bytes] = {}

    def process(rank: int) -> None:
        time.sleep(0.05 * rank)
        assert ask(server, "PUT", f"/global/{rank}", bytes([rank]) * 70_000)[0] == 200
        met[rank] = wait_for(server, f"/global/{1 - rank}")
        assert ask(server, "DELETE", f"/global/{rank}")[0] == 200

    threads = [threading.Thread(target=process, args=(rank,)) for rank in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert met == {0: b"\x01" * 70_000, 1: b"\x00" * 70_000}
    assert ask(server, "GET", "/global/0")[0] == 404  # both have done with it: empty again


def test_a_scope_lives_until_the_last_has_done(server: Server) -> None:
    ask(server, "PUT", "/global/0", b"x")
    ask(server, "DELETE", "/global/0")
    ask(server, "DELETE", "/global/0")  # the same one again does not count twice
    assert ask(server, "GET", "/global/0") == (200, b"x")
    ask(server, "DELETE", "/global/1")
    assert ask(server, "GET", "/global/0")[0] == 404


def test_a_scope_of_the_programs_own(server: Server) -> None:
    assert ask(server, "PUT", "/global_process_set_1/a", b"")[0] == 200
    assert ask(server, "GET", "/global_process_set_1/a") == (200, b"")
    ask(server, "PUT", "/global_process_set_1/b", b"b")
    ask(server, "DELETE", "/global_process_set_1/a")
    assert ask(server, "GET", "/global_process_set_1/a")[0] == 404
    assert ask(server, "GET", "/global_process_set_1/b") == (200, b"b")


def test_what_is_refused(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ask(server, "GET", "/")[0] == 400
    assert ask(server, "PUT", "/a/b/c", b"x")[0] == 400
    assert ask(server, "DELETE", "//b")[0] == 400
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=5)
    connection.putrequest("PUT", "/a/b")
    connection.putheader("Content-Length", str(MAX_VALUE + 1))
    connection.endheaders()
    assert connection.getresponse().status == 413
    connection.close()
    monkeypatch.setattr("submarine_runtime.frameworks.helpers.rendezvous.MAX_TOTAL", 10)
    assert ask(server, "PUT", "/a/b", b"123456")[0] == 200
    assert ask(server, "PUT", "/a/c", b"123456")[0] == 507
    assert Store({}).get("a", "b") is None


@pytest.mark.slow
def test_the_others_wait_until_the_chief_serves() -> None:
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        port = str(door.getsockname()[1])
        command = [sys.executable, "-m", "submarine_runtime", "await", "--address", "127.0.0.1"]
        waiting = subprocess.Popen([*command, "--port", port], stdout=subprocess.PIPE)
        try:
            time.sleep(0.3)
            assert waiting.poll() is None
            door.listen()
            began = time.monotonic()
            assert waiting.stdout is not None
            assert waiting.stdout.readline() == b"the chief serves\n"
            assert time.monotonic() - began < 60
            assert waiting.poll() is None  # its word is read before its end is seen
        finally:
            waiting.kill()
            waiting.communicate()


@pytest.mark.slow
def test_idle_connections_do_not_keep_a_process_away(server: Server) -> None:
    idle = [
        socket.create_connection(("127.0.0.1", server.server_port), 5) for _ in range(MAX_AT_ONCE)
    ]
    try:
        idle[0].sendall(b"PUT /global/x HTTP/1.1\r\nContent-Length: 9\r\n\r\nhalf")
        began = time.monotonic()
        assert ask(server, "PUT", "/global/0", b"here") == (200, b"")
        assert time.monotonic() - began < 4.0  # a connection may be silent for 10 s otherwise
    finally:
        for each in idle:
            each.close()
