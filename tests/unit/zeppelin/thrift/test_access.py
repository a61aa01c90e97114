"""Connections are accepted from Zeppelin's server and its user, not from other users and hosts."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from submarine_runtime.network import peers
from submarine_zeppelin.service.handler import Handler
from submarine_zeppelin.thrift import (
    AccessPolicy,
    BoundSocket,
    EventClient,
    InterpreterServer,
    ServerUnavailableError,
    access,
)
from submarine_zeppelin.thrift.access import ADDRESSES
from tests.second_user import SECOND, as_user, needs_root, start_as_user
from tests.unit.zeppelin.thrift.test_protocol import recorded
from tests.unit.zeppelin.thrift.wire import Parts

#: An address of the network for documentation, which no machine has.
ELSEWHERE = "192.0.2.7"


@contextmanager
def served(policy: AccessPolicy, host: str = "127.0.0.1") -> Iterator[tuple[Parts, int]]:
    """Run a server of the protocol; yield the recorded calls and the port."""
    parts, nothing = Parts(), (lambda *_: None,) * 3
    bound = BoundSocket(host, range(0))
    handler = Handler(parts, parts, parts, *nothing)  # type: ignore[arg-type]
    server = InterpreterServer(handler, bound, policy)
    server.start()
    try:
        yield parts, bound.port
    finally:
        server.stop()


def ask(host: str, port: int) -> bytes:
    """Return the server's answer to a recorded paragraph."""
    with socket.create_connection((host, port), timeout=30) as client:
        client.sendall(recorded("service", "interpret")[0])
        try:
            return client.recv(65536)
        except ConnectionResetError:
            return b""


def ask_as_second_user(host: str, port: int) -> str:
    request = recorded("service", "interpret")[0]
    return as_user(
        f"""
        client = socket.create_connection(({host!r}, {port}))
        client.sendall({request!r})
        return client.recv(65536) or "closed"
        """
    )


@pytest.mark.slow
@needs_root
@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_calls_of_another_user_are_rejected(host: str, caplog: pytest.LogCaptureFixture) -> None:
    with served(AccessPolicy(host, 1), host) as (parts, port):
        for _ in range(3):
            said = ask_as_second_user(host, port)
            assert said == "closed" or said.startswith(("ConnectionReset", "BrokenPipe"))
        assert parts.calls == []
        assert ask(host, port)
        assert "run" in [what for what, _ in parts.calls]
    rejected = [one.message for one in caplog.records if "rejected" in one.message]
    assert rejected == [f"rejected a connection: user {SECOND} is not Zeppelin's user"]


@needs_root
def test_calls_of_the_servers_user_are_accepted_by_a_process_of_another_user() -> None:
    """Zeppelin may start the process as the user of a note."""
    request = recorded("service", "interpret")[0]
    with start_as_user(
        f"""
        events = socket.create_server(("127.0.0.1", 0))
        print(events.getsockname()[1], flush=True)
        client = socket.create_connection(("127.0.0.1", int(sys.stdin.readline())))
        client.sendall({request!r})
        return bool(client.recv(65536))
        """
    ) as zeppelin:
        assert zeppelin.stdout is not None
        policy = AccessPolicy("127.0.0.1", int(zeppelin.stdout.readline()))
        with served(policy) as (parts, port):
            assert zeppelin.communicate(f"{port}\n", timeout=60)[0] == "True\n"
            assert "run" in [what for what, _ in parts.calls]
            # The user of the process may call too, as `submarine zeppelin check` does.
            assert ask("127.0.0.1", port)


@needs_root
def test_outputs_are_not_sent_to_a_port_of_another_user() -> None:
    bound = socket.create_server(("127.0.0.1", 0))
    port = bound.getsockname()[1]
    policy = AccessPolicy("127.0.0.1", port)
    bound.close()
    with start_as_user(
        f"""
        taken = socket.create_server(("127.0.0.1", {port}))
        print("taken", flush=True)
        connection = taken.accept()[0]
        return connection.recv(100) or "nothing"
        """
    ) as hostile:
        assert hostile.stdout is not None
        assert hostile.stdout.readline() == "taken\n"
        client = EventClient("127.0.0.1", port, "group", policy.trusts_server)
        with pytest.raises(ServerUnavailableError, match="its port belongs to another user"):
            client.append("note", "paragraph", 0, "secret")
        assert hostile.communicate(timeout=60)[0] == "nothing\n"


def test_a_remote_server_is_identified_by_its_address(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with served(AccessPolicy(ELSEWHERE, 1, {})) as (parts, port):
        assert ask("127.0.0.1", port) == b""
        assert parts.calls == []
        assert f"127.0.0.1 is not an address of Zeppelin's host {ELSEWHERE}" in caplog.text
        assert ADDRESSES in caplog.text
    with served(AccessPolicy(ELSEWHERE, 1, {ADDRESSES: "203.0.113.9, 127.0.0.1"})) as (parts, port):
        assert ask("127.0.0.1", port)
    # Names are resolved, also after a change of the server's address.
    monkeypatch.setattr(access, "is_local", lambda host: False)
    policy = AccessPolicy(ELSEWHERE, 1, {})
    policy.set_server("localhost", 1)
    with served(policy) as (parts, port):
        assert ask("127.0.0.1", port)


def test_a_system_that_does_not_report_users_causes_a_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(peers, "_NETLINK", None)
    monkeypatch.setattr(peers, "_TABLES", ("/nowhere/tcp",))
    caplog.set_level(logging.WARNING)
    with served(AccessPolicy("127.0.0.1", 1)) as (_, port):
        assert ask("127.0.0.1", port)
    assert "every user of this machine can run code" in caplog.text


@pytest.mark.parametrize("way", ["netlink", "tables"])
def test_users_of_connections_are_read_from_the_kernel(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if way == "netlink":
        monkeypatch.setattr(peers, "_TABLES", ())  # only a closed connection needs them
    else:
        monkeypatch.setattr(peers, "_NETLINK", None)
    families = [(socket.AF_INET, "127.0.0.1", "127.0.0.1"), (socket.AF_INET6, "::1", "::1")]
    families.append((socket.AF_INET6, "::", "127.0.0.1"))  # as a Java server listens
    for family, listen, host in families:
        dual = listen == "::"
        with socket.create_server((listen, 0), family=family, dualstack_ipv6=dual) as server:
            port = server.getsockname()[1]
            assert peers.listener_uids(host, port) == {os.geteuid()}
            with socket.create_connection((host, port)) as client:
                accepted = server.accept()[0]
                assert peers.peer_uid(accepted) == peers.peer_uid(client) == os.geteuid()
                accepted.close()
            # A connection that the other side has closed has no user.
            assert peers.peer_uid(client) is None
