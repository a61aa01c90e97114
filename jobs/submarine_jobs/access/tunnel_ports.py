"""Forward local ports and Unix sockets through tunnels to a job, in a thread of their own.

Each connection is one tunnel. While the job cannot be reached, the connection waits and the tunnel
is retried, so a client can connect before the job is ready or while the network is down.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import socket
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from submarine_jobs.access.agent_client import AgentAddress
from submarine_jobs.access.tunnel import Tunnel, TunnelError, open_tunnel
from submarine_jobs.concurrency import background_loop
from submarine_runtime.network import is_own

TUNNEL_HOST = "127.0.0.1"
#: First and longest pause between two attempts to open a tunnel, in seconds.
FIRST_PAUSE, LAST_PAUSE = 0.03, 1.0
BACKLOG = 100


def tunnel_loop() -> asyncio.AbstractEventLoop:
    """Return the event loop of all tunnels of this process, in a daemon thread.

    A busy server does not delay the tunnels, nor do they delay the server.
    """
    return background_loop("submarine-tunnels")


class Tap(Protocol):
    """Observer of the data of one connection; must not block or raise."""

    def sent(self, data: bytes) -> None:
        """Called with data from the client to the job."""

    def received(self, data: bytes) -> None:
        """Called with data from the job to the client."""


class TunnelPorts:
    """Listening sockets, one for each tunnel name; call all methods in ``tunnel_loop``.

    A connection acts as the owner of the job. Therefore a loopback port accepts only connections of
    this user and of root, and a Unix socket is in a private directory.

    Parameters
    ----------
    names
        Names of the tunnels.
    taps
        Name -> function that creates a tap for each connection.

    Attributes
    ----------
    address
        Current address of the job; None while it is not known.
    """

    def __init__(
        self, names: Iterable[str], taps: Mapping[str, Callable[[], Tap]] | None = None
    ) -> None:
        self._names = tuple(names)
        self._taps = dict(taps or {})
        self._listeners: list[socket.socket] = []
        self._paths: dict[str, tuple[str, socket.socket]] = {}
        self._accepting: set[asyncio.Task[object]] = set()
        self._open: set[_LocalConnection] = set()
        self._returning: Counter[str] = Counter()
        self.address: AgentAddress | None = None
        self.ports: dict[str, int] = {}

    async def start(self, ports: Mapping[str, int] | None = None) -> dict[str, int]:
        """Listen on loopback ports and return them by name.

        Parameters
        ----------
        ports
            Ports by name; by default any free port.

        Raises
        ------
        OSError
            If a port is in use.
        """
        try:
            for name in self._names:
                address = (TUNNEL_HOST, (ports or {}).get(name, 0))
                listener = socket.create_server(address, backlog=BACKLOG)
                self._begin(listener, name)
                self.ports[name] = listener.getsockname()[1]
        except OSError:
            self.close()
            raise
        return self.ports

    async def start_at(self, paths: Mapping[str, str]) -> None:
        """Listen on Unix sockets; recreate a socket whose file is missing.

        Jupyter deletes the files of a kernel's sockets before it restarts the kernel.

        Parameters
        ----------
        paths
            Name -> path.

        Raises
        ------
        OSError
            If a socket cannot be created.
        """
        for name, path in paths.items():
            if os.path.exists(path):
                continue
            if name in self._paths:
                self._end(self._paths.pop(name)[1])
            listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                listener.bind(path)
                listener.listen(BACKLOG)
            except OSError:
                listener.close()
                self.close()
                raise
            self._paths[name] = (path, listener)
            self._begin(listener, name)

    def _begin(self, listener: socket.socket, name: str) -> None:
        listener.setblocking(False)
        self._listeners.append(listener)
        self._listen(listener, name)

    def _end(self, listener: socket.socket) -> None:
        asyncio.get_running_loop().remove_reader(listener)
        self._listeners.remove(listener)
        listener.close()

    def _listen(self, listener: socket.socket, name: str) -> None:
        if listener in self._listeners:
            asyncio.get_running_loop().add_reader(listener, self._accept, listener, name)

    def _accept(self, listener: socket.socket, name: str) -> None:
        """Accept a connection synchronously.

        In Python 3.11, a connection that an ``asyncio.Server`` is accepting when it is closed stays
        open and cannot be closed.
        """
        loop = asyncio.get_running_loop()
        try:
            connection, _ = listener.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return
        except OSError:  # Too many open files: clients wait in the queue of the operating system.
            loop.remove_reader(listener)
            loop.call_later(LAST_PAUSE, self._listen, listener, name)
            return
        if connection.family != socket.AF_UNIX and not is_own(connection):
            connection.close()
            return
        connection.setblocking(False)
        # asyncio sets it only for sockets with an explicit protocol; an accepted socket has none
        # (0).
        with contextlib.suppress(OSError):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        make = functools.partial(_LocalConnection, self, name)
        accepting = loop.create_task(loop.connect_accepted_socket(make, connection))
        self._accepting.add(accepting)
        accepting.add_done_callback(self._accepting.discard)

    def close(self) -> None:
        """Close all listeners and connections."""
        for listener in list(self._listeners):
            self._end(listener)
        for path, _ in self._paths.values():
            with contextlib.suppress(OSError):
                os.unlink(path)
        self._paths.clear()
        self.cut()

    def cut(self) -> None:
        """Close all connections; clients can connect again."""
        for local in list(self._open):
            local.end()

    def count(self, name: str) -> int:
        """Return the number of clients, with those that reconnect after the end of a tunnel."""
        return sum(local.name == name for local in self._open) + self._returning[name]

    def tap(self, name: str) -> Tap | None:
        """Create the tap of a new connection; None if there is none for this name."""
        return self._taps[name]() if name in self._taps else None

    def add_connection(self, local: _LocalConnection) -> bool:
        """Add a connection; False if the ports were closed after it was accepted."""
        if not self._listeners:
            return False
        self._open.add(local)
        self._returning[local.name] = max(0, self._returning[local.name] - 1)
        return True

    def remove_connection(self, local: _LocalConnection, returns: bool) -> None:
        """Remove a connection; ``returns``: its tunnel ended, so the client will reconnect."""
        if local in self._open:
            self._open.remove(local)
            self._returning[local.name] += returns


class _LocalConnection(asyncio.Protocol):
    """Connection of a local client and its tunnel."""

    def __init__(self, ports: TunnelPorts, name: str) -> None:
        self._ports = ports
        self.name = name
        self._transport: asyncio.Transport | None = None
        self._tunnel: Tunnel | None = None
        self._opening: asyncio.Task[None] | None = None
        self._early = bytearray()
        self._tunnel_ended = False
        self._tap = ports.tap(name)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        if not self._ports.add_connection(self):
            transport.abort()
            return
        # Before 3.11.4 asyncio starts to read after this call even if reading is paused here.
        asyncio.get_running_loop().call_soon(transport.pause_reading)
        self._opening = asyncio.get_running_loop().create_task(self._open(transport))

    async def _open(self, transport: asyncio.Transport) -> None:
        pause = FIRST_PAUSE
        while not transport.is_closing():
            if self._ports.address is not None:
                with contextlib.suppress(TunnelError):
                    tunnel = await open_tunnel(
                        self._ports.address, self.name, self._take, self._end_of_tunnel
                    )
                    self._tunnel = tunnel
                    tunnel.other = transport
                    if transport.is_closing() and tunnel.transport is not None:
                        tunnel.transport.abort()
                    else:
                        self.data_received(bytes(self._early))
                        self._early.clear()
                        transport.resume_reading()
                    return
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, LAST_PAUSE)

    def data_received(self, data: bytes) -> None:
        if self._tunnel is None or self._tunnel.transport is None:
            self._early += data  # At most one read: reading is paused.
        elif data:
            self._tunnel.transport.write(data)
            if self._tap is not None:
                self._tap.sent(data)

    def _take(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)
        if self._tap is not None:
            self._tap.received(data)

    def _end_of_tunnel(self) -> None:
        if self._transport is not None:
            self._tunnel_ended = not self._transport.is_closing()
            self._transport.close()

    def pause_writing(self) -> None:
        if self._tunnel is not None and self._tunnel.transport is not None:
            self._tunnel.transport.pause_reading()

    def resume_writing(self) -> None:
        if self._tunnel is not None and self._tunnel.transport is not None:
            self._tunnel.transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self._ports.remove_connection(self, self._tunnel_ended)
        if self._tunnel is not None and self._tunnel.transport is not None:
            self._tunnel.transport.close()
        elif self._opening is not None:
            self._opening.cancel()

    def end(self) -> None:
        if self._transport is not None:
            self._transport.abort()
