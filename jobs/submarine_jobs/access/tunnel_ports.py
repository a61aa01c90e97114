"""Ports and Unix sockets of this machine that lead through tunnels into a job; their thread.

Each connection to one of them is one tunnel. While the job cannot be reached a connection waits and
its tunnel is tried again, so a client that connects early, or across a broken network, needs no
patience of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import socket
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from submarine_jobs.access.agent_client import AgentAddress
from submarine_jobs.access.tunnel import Tunnel, TunnelError, open_tunnel
from submarine_runtime.network import is_own

HOST = "127.0.0.1"
#: Seconds between two tries to open a tunnel: from, to.
FIRST_PAUSE, LAST_PAUSE = 0.03, 1.0
BACKLOG = 100


@functools.cache
def tunnel_loop() -> asyncio.AbstractEventLoop:
    """The event loop of this process in which tunnels live, in a daemon thread of its own.

    A server that is busy for a moment must not hold them up, nor they the server.
    """
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True, name="submarine-tunnels").start()
    return loop


class Tap(Protocol):
    """Sees what passes one connection, once it has passed; quick, and raises nothing."""

    def sent(self, data: bytes) -> None:
        """What a client has sent into its tunnel."""

    def received(self, data: bytes) -> None:
        """What has come out of it."""


class TunnelPorts:
    """Listening sockets, one for each name of a tunnel; all methods belong to ``tunnel_loop``.

    A connection to one is let through as the owner of the job. So a port of the loopback interface
    takes connections of this user (and of root) only, and a Unix socket is in a private directory.

    Parameters
    ----------
    names
        Of the tunnels.
    taps
        Name -> what makes a tap for each connection.

    Attributes
    ----------
    address
        Where the job listens now; None while that is not known.
    """

    def __init__(
        self, names: Iterable[str], taps: Mapping[str, Callable[[], Tap]] | None = None
    ) -> None:
        self._names = tuple(names)
        self._taps = dict(taps or {})
        self._listeners: list[socket.socket] = []
        self._paths: dict[str, tuple[str, socket.socket]] = {}
        self._joining: set[asyncio.Task[object]] = set()
        self._open: set[_Local] = set()
        self.address: AgentAddress | None = None
        self.ports: dict[str, int] = {}

    async def start(self, wanted: Mapping[str, int] | None = None) -> dict[str, int]:
        """Listen; name -> port.

        Parameters
        ----------
        wanted
            Ports to take; by default any that are free.

        Raises
        ------
        OSError
            If a wanted port is taken.
        """
        try:
            for name in self._names:
                address = (HOST, (wanted or {}).get(name, 0))
                listener = socket.create_server(address, backlog=BACKLOG)
                self._begin(listener, name)
                self.ports[name] = listener.getsockname()[1]
        except OSError:
            self.close()
            raise
        return self.ports

    async def start_at(self, paths: Mapping[str, str]) -> None:
        """Listen on Unix sockets; again where a socket's file is gone, and else nothing.

        Jupyter deletes the files of a kernel's sockets before it restarts the kernel.

        Parameters
        ----------
        paths
            Name -> path.

        Raises
        ------
        OSError
            If a socket cannot be made there.
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
        """Take a connection at once.

        One that an ``asyncio.Server`` has half accepted when it is closed stays open for ever, and
        nobody can end it (Python 3.11).
        """
        loop = asyncio.get_running_loop()
        try:
            connection, _ = listener.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return
        except OSError:  # No more files may be open. Who connects waits in the kernel's queue.
            loop.remove_reader(listener)
            loop.call_later(LAST_PAUSE, self._listen, listener, name)
            return
        if connection.family != socket.AF_UNIX and not is_own(connection):
            connection.close()
            return
        connection.setblocking(False)
        # asyncio sets it only where the protocol is given, and an accepted socket has none (0).
        with contextlib.suppress(OSError):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        make = functools.partial(_Local, self, name)
        joining = loop.create_task(loop.connect_accepted_socket(make, connection))
        self._joining.add(joining)
        joining.add_done_callback(self._joining.discard)

    def close(self) -> None:
        """End all connections, and listen no more."""
        for listener in list(self._listeners):
            self._end(listener)
        for path, _ in self._paths.values():
            with contextlib.suppress(OSError):
                os.unlink(path)
        self._paths.clear()
        self.cut()

    def cut(self) -> None:
        """End all connections; whoever wants may connect again."""
        for local in list(self._open):
            local.end()

    def tap(self, name: str) -> Tap | None:
        """For a new connection; None: nobody wants to see what passes."""
        return self._taps[name]() if name in self._taps else None

    def joined(self, local: _Local) -> bool:
        """Note a connection; False where it was accepted just before the ports were closed."""
        if not self._listeners:
            return False
        self._open.add(local)
        return True

    def left(self, local: _Local) -> None:
        """Forget a connection."""
        self._open.discard(local)


class _Local(asyncio.Protocol):
    """A connection of a client on this machine, and its tunnel."""

    def __init__(self, ports: TunnelPorts, name: str) -> None:
        self._ports = ports
        self._name = name
        self._transport: asyncio.Transport | None = None
        self._tunnel: Tunnel | None = None
        self._opening: asyncio.Task[None] | None = None
        self._early = bytearray()
        self._tap = ports.tap(name)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        if not self._ports.joined(self):
            transport.abort()
            return
        # Before 3.11.4 asyncio begins to read after this call, whatever was paused in it.
        asyncio.get_running_loop().call_soon(transport.pause_reading)
        self._opening = asyncio.get_running_loop().create_task(self._open(transport))

    async def _open(self, transport: asyncio.Transport) -> None:
        pause = FIRST_PAUSE
        while not transport.is_closing():
            if self._ports.address is not None:
                with contextlib.suppress(TunnelError):
                    tunnel = await open_tunnel(
                        self._ports.address, self._name, self._take, transport.close
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
            self._early += data  # one read at most: nothing more is asked for
        elif data:
            self._tunnel.transport.write(data)
            if self._tap is not None:
                self._tap.sent(data)

    def _take(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)
        if self._tap is not None:
            self._tap.received(data)

    def pause_writing(self) -> None:
        if self._tunnel is not None and self._tunnel.transport is not None:
            self._tunnel.transport.pause_reading()

    def resume_writing(self) -> None:
        if self._tunnel is not None and self._tunnel.transport is not None:
            self._tunnel.transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self._ports.left(self)
        if self._tunnel is not None and self._tunnel.transport is not None:
            self._tunnel.transport.close()
        elif self._opening is not None:
            self._opening.cancel()

    def end(self) -> None:
        if self._transport is not None:
            self._transport.abort()
