"""Tunnels through a job's port: what gets through, and what does not."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import socket
from collections.abc import Iterator
from dataclasses import replace

import pytest

from submarine_jobs.access import AgentAddress, TunnelError, TunnelPorts, open_tunnel
from submarine_runtime.protocol.tunnels import Target, declared_target
from tests.local.agent.agent_processes import OLDEST_PYTHONS, AgentProcesses
from tests.waiting import until

#: Echoes, and ends where it is told to; on a Unix socket and on a port.
PROGRAM = """\
import asyncio, json, os
async def echo(reader, writer):
    while data := await reader.read(1 << 16):
        if data == b"end": break
        writer.write(data)
        await writer.drain()
    writer.close()
async def main():
    os.mkdir("../sockets")
    await asyncio.start_unix_server(echo, "../sockets/echo")
    tcp = await asyncio.start_server(echo, "127.0.0.1", 0)
    os.symlink("/tmp", "../outside")
    declared = {
        "echo": {"unix": "sockets/echo"},
        "port": {"port": tcp.sockets[0].getsockname()[1]},
        "nobody": {"unix": "sockets/nobody"},
        "outside": {"unix": "outside/x"},
        "host": {"host": "example.org", "port": "80"},
    }
    with open(os.environ["SUBMARINE_TUNNELS"], "w") as file: json.dump(declared, file)
    print("up", flush=True)
    while not os.path.exists("go"): await asyncio.sleep(0.05)
asyncio.run(main())
"""


@pytest.fixture(params=OLDEST_PYTHONS)
def address(agents: AgentProcesses, request: pytest.FixtureRequest) -> Iterator[AgentAddress]:
    agent = agents.launch(agents.prepare(PROGRAM), python=request.param)
    agents.wait_for_log(b"up")
    agents.client()
    live = json.loads((agents.job_dir / "live.json").read_text())
    yield AgentAddress(live["host"], live["port"], agents.secret)
    (agents.scratch() / "program/go").touch()
    assert agents.finish(agent) == 0


class Talk:
    """One tunnel, as a test reads and writes it."""

    def __init__(self) -> None:
        self.got = bytearray()
        self.lost = asyncio.Event()

    async def open(self, address: AgentAddress, name: str) -> Talk:
        self.tunnel = await open_tunnel(address, name, self.got.extend, self.lost.set)
        return self

    def send(self, data: bytes) -> None:
        assert self.tunnel.transport is not None
        self.tunnel.transport.write(data)

    async def until(self, length: int) -> None:
        async with asyncio.timeout(60):
            while len(self.got) < length:
                await asyncio.sleep(0.01)


def test_bytes_get_through_both_ways_and_ends_too(address: AgentAddress) -> None:
    async def talk() -> None:
        for name in ("echo", "port"):
            one = await Talk().open(address, name)
            sent = os.urandom(3_000_000)
            one.send(sent)
            await one.until(len(sent))
            assert hashlib.sha256(one.got).digest() == hashlib.sha256(sent).digest()
            one.send(b"end")
            await asyncio.wait_for(one.lost.wait(), 60)

    asyncio.run(talk())


def test_more_tunnels_than_requests_are_answered_at_once(address: AgentAddress) -> None:
    async def talk() -> None:
        talks = [await Talk().open(address, "echo") for _ in range(60)]
        for number, one in enumerate(talks):
            one.send(b"%d" % number)
        for number, one in enumerate(talks):
            await one.until(1)
            assert bytes(one.got) == b"%d" % number
            assert one.tunnel.transport is not None
            one.tunnel.transport.abort()

    asyncio.run(talk())


def test_nothing_else_is_reached(address: AgentAddress) -> None:
    async def refused(name: str, where: AgentAddress = address) -> int:
        with pytest.raises(TunnelError) as error:
            await Talk().open(where, name)
        return error.value.status

    async def talk() -> None:
        assert await refused("unknown") == 404
        assert await refused("../../etc") == 404
        assert await refused("nobody") == 503
        assert await refused("outside") == 503
        assert await refused("host") == 409
        assert await refused("") == 404
        stranger = replace(address.secret, token="guessed")
        assert await refused("echo", replace(address, secret=stranger)) == 401

    asyncio.run(talk())


def test_ports_of_this_machine_wait_for_a_job_and_survive_its_connection(
    address: AgentAddress,
) -> None:
    async def talk() -> None:
        ports = TunnelPorts(["echo"])
        port = (await ports.start())["echo"]
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"early")
        await asyncio.sleep(0.1)
        ports.address = address
        assert await asyncio.wait_for(reader.readexactly(5), 60) == b"early"
        ports.cut()
        assert await asyncio.wait_for(reader.read(), 60) == b""
        writer.close()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"again")
        assert await asyncio.wait_for(reader.readexactly(5), 60) == b"again"
        writer.write(b"end")
        assert await asyncio.wait_for(reader.read(), 60) == b""
        writer.close()
        ports.close()

    asyncio.run(talk())


def test_clients_that_lost_their_tunnel_are_counted_until_they_return(
    address: AgentAddress,
) -> None:
    async def talk() -> None:
        ports = TunnelPorts(["echo"])
        ports.address = address
        port = (await ports.start())["echo"]
        for _ in range(2):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"hello")
            assert await asyncio.wait_for(reader.readexactly(5), 60) == b"hello"
            assert ports.count("echo") == 1
            writer.write(b"end")
            assert await asyncio.wait_for(reader.read(), 60) == b""
            assert ports.count("echo") == 1
            writer.close()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"hello")
        assert await asyncio.wait_for(reader.readexactly(5), 60) == b"hello"
        writer.close()
        async with asyncio.timeout(60):
            while ports.count("echo"):
                await asyncio.sleep(0.01)
        ports.close()

    asyncio.run(talk())


@pytest.mark.parametrize("steps", range(6))
def test_a_connection_accepted_while_its_port_is_closed_ends(steps: int) -> None:
    async def talk() -> None:
        ports = TunnelPorts(["echo"])
        port = (await ports.start())["echo"]
        with socket.create_connection(("127.0.0.1", port)) as client:
            for _ in range(steps):
                await asyncio.sleep(0)
            ports.close()
            client.setblocking(False)
            with contextlib.suppress(ConnectionResetError):
                receiving = asyncio.get_running_loop().sock_recv(client, 1)
                assert await asyncio.wait_for(receiving, 60) == b""

    asyncio.run(talk())


@pytest.mark.parametrize(
    "content",
    [
        '{"a": {"unix": "/etc/x"}}',
        '{"a": {"unix": "../x"}}',
        '{"a": {"unix": "b/../../x"}}',
        '{"a": {"unix": "x", "port": 1}}',
        '{"a": {"port": 70000}}',
        '{"a": {"port": true, "host": "example.org"}}',
        '{"a": "example.org:80"}',
        '{"a": {"port": "80"}}',
        "[" * 20000,
        "not json",
        " " * 70000,
    ],
)
def test_what_a_program_declares_is_not_believed(agents: AgentProcesses, content: str) -> None:
    (agents.root / "tunnels.json").write_text(content)
    with pytest.raises(ValueError):
        declared_target(str(agents.root), "a")


def test_a_declaration_that_is_a_link_is_not_followed(agents: AgentProcesses) -> None:
    (agents.root / "real").write_text('{"a": {"port": 80}}')
    (agents.root / "tunnels.json").symlink_to("real")
    with pytest.raises(ValueError, match="cannot be read"):
        declared_target(str(agents.root), "a")
    (agents.root / "tunnels.json").unlink()
    assert declared_target(str(agents.root), "a") is None
    (agents.root / "tunnels.json").write_text('{"a": {"port": 80}}')
    assert declared_target(str(agents.root), "a") == Target(port=80)
    assert until(lambda: declared_target(str(agents.root), "b") is None)


def test_accepted_connections_send_small_messages_at_once() -> None:
    async def no_delay() -> int:
        ports = TunnelPorts(["echo"])
        try:
            port = (await ports.start())["echo"]
            with socket.create_connection(("127.0.0.1", port)):
                while not ports._open:
                    await asyncio.sleep(0.01)
                (local,) = ports._open
                assert local._transport is not None
                accepted = local._transport.get_extra_info("socket")
                return int(accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        finally:
            ports.close()

    assert asyncio.run(asyncio.wait_for(no_delay(), 60)) != 0
