"""The HTTP client of the cluster's interfaces against servers that fail in different ways."""

from __future__ import annotations

import json
import random
import re
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from submarine_runtime.cluster_http import (
    ANONYMOUS,
    BadUrlError,
    HttpClient,
    NoAnswerError,
    open_url,
    simple_access,
)
from submarine_runtime.storage import NotFoundError, StoreError, WebHdfsStore
from submarine_runtime.yarn import ResourceManagerClient

#: Receives the request's head and returns the pieces of the response.
Reply = Callable[[str], Iterator[bytes]]
Serve = Callable[[Reply], str]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts a server that answers one request of each connection; its URL."""
    listeners: list[socket.socket] = []

    def start(reply: Reply) -> str:
        listener = socket.create_server(("127.0.0.1", 0))
        listeners.append(listener)
        threading.Thread(target=_accept, args=(listener, reply), daemon=True).start()
        return f"http://127.0.0.1:{listener.getsockname()[1]}"

    yield start
    for listener in listeners:
        listener.close()


def _accept(listener: socket.socket, reply: Reply) -> None:
    with suppress(OSError):
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=_answer, args=(connection, reply), daemon=True).start()


def _answer(connection: socket.socket, reply: Reply) -> None:
    with connection, suppress(OSError):
        connection.settimeout(60)
        for piece in reply(connection.recv(1 << 16).decode()):
            connection.sendall(piece)


def answer(body: bytes | str, status: str = "200 OK", **headers: str) -> bytes:
    data = body.encode() if isinstance(body, str) else body
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(data)}", "Connection: close"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + data


def always(body: bytes | str, status: str = "200 OK", **headers: str) -> Reply:
    return lambda _: iter([answer(body, status, **headers)])


def silence(_: str) -> Iterator[bytes]:
    time.sleep(60)
    yield b""


def closed_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"http://127.0.0.1:{listener.getsockname()[1]}"


def test_the_next_server_is_asked_and_remembered(serve: Serve) -> None:
    up = serve(always("{}"))
    client = HttpClient([closed_port(), f"{up}/"], timeout=5.0)
    assert client.request("GET", "/a").json() == {}
    assert client.url == up
    calls = client.calls
    client.request("GET", "/a")
    assert (calls, client.calls) == (2, 3)


@pytest.mark.slow
def test_a_hanging_server_leaves_its_share_of_the_time_to_the_next(serve: Serve) -> None:
    urls = [serve(silence), serve(always("[1]"))]
    assert HttpClient(urls, timeout=0.5).request("GET", "/").json() == [1]
    assert HttpClient(urls, timeout=60.0, deadline=4.0).request("GET", "/").json() == [1]
    kept = HttpClient(urls, timeout=60.0, deadline=4.0, keep_alive=True)
    assert kept.request("GET", "/").json() == [1]
    began = time.monotonic()
    with pytest.raises(NoAnswerError) as failed:
        HttpClient([urls[0]] * 9, timeout=60.0, deadline=0.5).request("GET", "/")
    assert failed.value.timed_out
    assert time.monotonic() - began < 10


@pytest.mark.slow
def test_the_deadline_ends_a_response_that_does_not_end(serve: Serve) -> None:
    def endless(_: str) -> Iterator[bytes]:
        yield answer(b"x" * 400_000_000)[:1000]
        for _number in range(1000):
            time.sleep(0.1)
            yield b"x" * 400_000

    client = HttpClient([serve(endless)], timeout=60.0, deadline=1.0)
    with pytest.raises(NoAnswerError) as failed:
        client.request("GET", "/", limit=1 << 30)
    assert failed.value.timed_out


@pytest.mark.skipif(sys.platform != "linux", reason="packets are awaited together on Linux only")
def test_the_end_of_a_body_is_not_awaited_with_more_bytes(serve: Serve) -> None:
    body = random.Random(1).randbytes(3 << 20)
    end = threading.Event()

    def reply(_: str) -> Iterator[bytes]:
        yield answer(body)[:-1000]
        time.sleep(0.2)
        yield body[-1000:]
        end.wait(60)  # The connection stays open.

    found, awaited = bytearray(len(body)), set()
    with open_url("GET", serve(reply), 10) as response:
        sock = response._socket
        assert sock is not None
        with memoryview(found) as view:
            done = 0
            while count := response.readinto(view[done:]):
                done += count
                if sock.fileno() >= 0:
                    awaited.add(sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT))
        end.set()
    assert found == body
    assert max(awaited) > 1 << 13


def test_user_and_proxies(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    seen: list[str] = []

    def record(head: str) -> Iterator[bytes]:
        seen.append(head.partition("\r\n")[0])
        yield answer("{}")

    url = serve(record)
    HttpClient([url], access=simple_access("a&b c"), timeout=5.0).request("GET", "/x", {"op": "é"})
    HttpClient([f"{url}/gateway"], timeout=5.0).request("GET", "/x")
    with open_url("GET", f"{url}/y?user.name=me", 5.0) as response:
        assert response.read_all(10).status == 200
    assert seen == [
        "GET /x?op=%C3%A9&user.name=a%26b+c HTTP/1.1",
        "GET /gateway/x HTTP/1.1",
        "GET /y?user.name=me HTTP/1.1",
    ]


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (always("x" * 300), "longer than"),
        (lambda _: iter([answer("12345")[:-2]]), "IncompleteRead"),
        (lambda _: iter([b"SSH-2.0-x\r\n"]), "SSH"),
        (lambda _: iter([]), "closed connection"),
    ],
)
def test_no_part_of_a_response_is_returned(serve: Serve, reply: Reply, reason: str) -> None:
    client = HttpClient([serve(reply)], timeout=5.0)
    with pytest.raises(NoAnswerError, match=reason):
        client.request("GET", "/", limit=100)


@pytest.mark.parametrize("url", ["ftp://host/", "http://host:port/", "http://[", "", "file:///x"])
def test_addresses_that_are_no_http(url: str) -> None:
    with pytest.raises(NoAnswerError):
        HttpClient([url], timeout=1.0).request("GET", "/")
    with pytest.raises(BadUrlError), open_url("GET", url, 1.0):
        pass


def test_no_servers() -> None:
    with pytest.raises(NoAnswerError, match="no address"):
        HttpClient([], timeout=1.0).request("GET", "/")
    assert ResourceManagerClient([], timeout=1.0).query("/info") is None


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ('{"a": 1}', {"a": 1}),
        ("[1]", None),
        ("<html>", None),
        ("[" * 100000, None),
        (b"\xff\xfe\xfa", None),
        ("", None),
    ],
)
def test_a_query_returns_an_object_or_nothing(serve: Serve, body: Any, found: Any) -> None:
    client = ResourceManagerClient([serve(always(body))], timeout=5.0)
    assert client.query("/info") == found


def test_a_query_returns_nothing_for_an_error(serve: Serve) -> None:
    client = ResourceManagerClient([serve(always('{"a": 1}', "500 Oops"))], timeout=5.0)
    assert client.query("/info") is None


@pytest.mark.parametrize(
    "standby",
    [
        always("", "307 Temporary Redirect", Location="http://elsewhere/"),
        always("There is no active RM", Refresh="3; url=/"),
        always("This is standby RM. The redirect url is: http://elsewhere/"),
    ],
)
def test_a_standby_of_the_resourcemanager_is_passed_over(serve: Serve, standby: Reply) -> None:
    client = ResourceManagerClient([serve(standby), serve(always('{"a": 1}'))], timeout=5.0)
    assert client.query("/info") == {"a": 1}
    with pytest.raises(NoAnswerError, match="it is the standby"):
        ResourceManagerClient([serve(standby)], timeout=5.0).request("GET", "/info")


def remote(exception: str, message: str) -> str:
    return json.dumps({"RemoteException": {"exception": exception, "message": message}})


def test_a_resourcemanager_that_does_not_know_the_token_is_passed_over(serve: Serve) -> None:
    """A standby of a cluster with Kerberos."""
    message = (
        "org.apache.hadoop.security.token.SecretManager$InvalidToken: Token for real user: , "
        "can't be found in cache"
    )
    standby = serve(always(remote("AuthenticationException", message), "403 Forbidden"))
    client = ResourceManagerClient([standby, serve(always('{"a": 1}'))], timeout=5.0)
    assert client.query("/apps") == {"a": 1}
    with pytest.raises(NoAnswerError, match="it does not accept the delegation token"):
        ResourceManagerClient([standby], timeout=5.0).request("GET", "/apps")
    # A user without permission is refused by the active one.
    refusal = serve(always(remote("ForbiddenException", "no access"), "403 Forbidden"))
    urls = [refusal, serve(always("{}"))]
    assert ResourceManagerClient(urls, timeout=5.0).request("GET", "/apps").status == 403


@pytest.mark.parametrize(
    ("exception", "message"),
    [
        (
            "SecurityException",
            "Failed to obtain user group information: "
            "org.apache.hadoop.security.token.SecretManager$InvalidToken: StandbyException",
        ),
        ("RetriableException", "Namenode is in startup mode"),
    ],
)
def test_a_namenode_that_cannot_read_tokens_yet_is_passed_over(
    serve: Serve, exception: str, message: str
) -> None:
    standby = serve(always(remote(exception, message), "403 Forbidden"))
    active = serve(always('{"FileStatus": {"length": 3}}'))
    assert WebHdfsStore([standby, active], "/job", ANONYMOUS, 5.0).stat("a") is not None
    with pytest.raises(StoreError, match="HDFS refused /job/a") as failed:
        WebHdfsStore([standby], "/job", ANONYMOUS, 5.0).stat("a")
    assert failed.value.transient


def test_a_standby_namenode_is_passed_over_and_counted(serve: Serve) -> None:
    standby = serve(always(remote("StandbyException", "state standby"), "403 Forbidden"))
    active = serve(always('{"FileStatus": {"length": 3}}'))
    store = WebHdfsStore([standby, active], "/job", simple_access("ada"), 5.0)
    found = store.stat("a")
    assert found is not None
    assert (found.size, store.operations) == (3, 2)
    store.stat("a")
    assert store.operations == 3
    with pytest.raises(StoreError, match="HDFS refused /job/a: state standby") as failed:
        WebHdfsStore([standby], "/job", simple_access("ada"), 5.0).stat("a")
    assert failed.value.transient


def test_a_broken_listing_of_a_namenode_is_not_an_empty_directory(serve: Serve) -> None:
    whole = answer('{"FileStatuses": {"FileStatus": [{"pathSuffix": "a"}]}}')
    store = WebHdfsStore([serve(lambda _: iter([whole[:-9]]))], "/job", simple_access("ada"), 5.0)
    with pytest.raises(StoreError, match="ended 9 bytes too early") as failed:
        store.entries("")
    assert failed.value.transient
    assert [
        entry.name
        for entry in WebHdfsStore([serve(lambda _: iter([whole]))], "", ANONYMOUS, 5.0).entries(
            "/job"
        )
    ] == ["a"]


@pytest.mark.parametrize("location", ["", "ftp://host/", "http://host:x/", "/webhdfs/v1/a"])
def test_a_redirect_of_a_namenode_to_no_address(serve: Serve, location: str) -> None:
    reply = always("", "307 Temporary Redirect", Location=location)
    store = WebHdfsStore([serve(reply)], "/job", simple_access("ada"), 5.0)
    for work in (
        lambda: store.read("a"),
        lambda: store.appender("a"),
        lambda: store.create("a", [], 0),
    ):
        with pytest.raises(StoreError, match="is not an http address"):
            work()


def test_refusals_of_a_datanode(serve: Serve) -> None:
    gone = serve(always(remote("FileNotFoundException", "gone"), "404 Not Found"))
    full = serve(always(remote("DSQuotaExceededException", "full"), "403 Forbidden"))

    def store(target: str) -> WebHdfsStore:
        reply = always("", "307 Temporary Redirect", Location=f"{target}/webhdfs/v1/job/a?op=X")
        return WebHdfsStore([serve(reply)], "/job", simple_access("ada"), 5.0)

    assert store(gone).read("a") is None
    with pytest.raises(NotFoundError):
        list(store(gone).stream("a"))
    for write in (store(full).create, store(full).put):
        with pytest.raises(StoreError, match="HDFS refused /job/a: full") as refused:
            write("a", [b"x"], 1)
        assert refused.value.full
        assert not refused.value.transient


def modes_of(serve: Serve, store_of: Callable[[str], WebHdfsStore], *paths: str) -> list[str]:
    """The permissions with which a store creates files and directories."""
    seen: list[str] = []

    def reply(head: str) -> Iterator[bytes]:
        seen.extend(re.findall(r"permission=(\d+)", head))
        yield answer("{}")

    store = store_of(serve(reply))
    for path in paths:
        with pytest.raises(StoreError):  # the reply is no redirect
            store.appender(path)
        store.make_directory(path)
    return seen


def test_files_of_a_shared_job_are_readable_for_its_acl_and_no_others(serve: Serve) -> None:
    def make(shared: bool) -> Callable[[str], WebHdfsStore]:
        access = simple_access("ada")
        return lambda url: WebHdfsStore([url], "/job", access, 5.0, shared=shared)

    inside, outside = ("a", "/job/b"), ("/jobs/c", "/job", "/data/d")
    assert modes_of(serve, make(True), *inside) == ["640", "750"] * 2
    assert modes_of(serve, make(True), *outside) == ["600", "700"] * 3
    assert modes_of(serve, make(False), *inside) == ["600", "700"] * 2
