"""Forward raw bytes between a client of the job's port and a target that the program declares.

One tunnel is one TLS connection and one thread. The thread holds at most ``MAX_HELD`` bytes for a
slow side, so that a slow side slows down the other, as without a tunnel. ``agent.live`` and
``protocol.tunnels`` check requests.
"""

from __future__ import annotations

import os
import select
import socket
import ssl
import threading
from contextlib import suppress

from submarine_runtime.protocol.tunnels import Target, declared_target

#: Maximum number of tunnels of one job; each client of a kernel uses five.
MAX_TUNNELS = 128
#: Maximum number of bytes held for one side.
MAX_HELD = 1 << 18
CHUNK = 1 << 16
#: Maximum number of bytes in a TLS record.
TLS_RECORD = 1 << 14
#: Seconds that the program's socket may take to accept.
CONNECT_SECONDS = 5.0
#: Seconds after which a side that does not acknowledge data counts as disconnected.
SILENCE_SECONDS = 60
#: The operation would block, in plain or in TLS.
_WOULD_BLOCK = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
_READ = select.POLLIN | select.POLLHUP | select.POLLERR


class Tunnels:
    """All tunnels of one job's port.

    Parameters
    ----------
    root
        The job's scratch directory.
    """

    def __init__(self, root: str) -> None:
        self._root = root
        self._slots = threading.BoundedSemaphore(MAX_TUNNELS)

    def open(self, name: str) -> socket.socket | None:
        """Connect to the target ``name``; return None if the program has not declared it.

        Raises
        ------
        ValueError
            If the declaration is malformed.
        OSError
            If the target does not accept, or there are too many tunnels.
        """
        target = declared_target(self._root, name)
        if target is None:
            return None
        if not self._slots.acquire(blocking=False):
            raise OSError(f"there are {MAX_TUNNELS} tunnels already")
        try:
            return _connect(self._root, target)
        except BaseException:
            self._slots.release()
            raise

    def forward(self, client: ssl.SSLSocket, local: socket.socket) -> None:
        """Forward bytes in both directions until one side ends; ``local`` is from ``open``."""
        try:
            keep_alive(client)
            TunnelForwarder(client, local).run()
        finally:
            self.close(local)

    def close(self, local: socket.socket) -> None:
        """Close a connection of ``open`` that was not carried."""
        with suppress(OSError):
            local.close()
        self._slots.release()


def _connect(root: str, target: Target) -> socket.socket:
    if target.port:
        made = socket.create_connection(("127.0.0.1", target.port), CONNECT_SECONDS)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return made
    # Paths of containers are longer than the 107 bytes of a socket address.
    directory, name = os.path.split(os.path.join(root, target.unix))
    top = os.path.realpath(root)
    if os.path.commonpath([os.path.realpath(directory), top]) != top:
        raise OSError(f"{target.unix} leads out of the scratch directory")
    descriptor = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    local = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        local.settimeout(CONNECT_SECONDS)
        local.connect(f"/proc/self/fd/{descriptor}/{name}")
    except BaseException:
        local.close()
        raise
    finally:
        os.close(descriptor)
    return local


def keep_alive(client: socket.socket) -> None:
    """Set the socket options: no delay for small packets, and detection of lost connections."""
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (
        ("TCP_KEEPIDLE", SILENCE_SECONDS // 4),
        ("TCP_KEEPINTVL", SILENCE_SECONDS // 4),
        ("TCP_KEEPCNT", 3),
        ("TCP_USER_TIMEOUT", SILENCE_SECONDS * 1000),
    ):
        if hasattr(socket, name):
            with suppress(OSError):
                client.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


class TunnelForwarder:
    """Forwards one tunnel in a single thread, because a TLS connection cannot be used by two.

    Parameters
    ----------
    local
        The program's side, or the TLS connection to an agent that forwards to it.
    early
        Bytes that were already received from there.
    """

    def __init__(self, client: ssl.SSLSocket, local: socket.socket, early: bytes = b"") -> None:
        self._client = client
        self._local = local
        self._to_client = _Direction(local, client, early)
        self._to_local = _Direction(client, local)
        self._poll = select.poll()

    def run(self) -> None:
        """Forward until one side has ended."""
        self._client.setblocking(False)
        self._local.setblocking(False)
        with suppress(OSError, ValueError):
            # Data that was received together with the request, and with its response.
            alive = self._to_client.forward() and self._to_local.forward()
            while alive:
                alive = self._forward_ready()
        with suppress(OSError, ValueError):
            self._client.settimeout(CONNECT_SECONDS)
            self._client.sendall(self._to_client.held)

    def _forward_ready(self) -> bool:
        """Wait for an event and forward; return whether both sides are still open.

        A side is not read while the other one's buffer is full.
        """
        to_client, to_local = self._to_client, self._to_local
        sides = ((self._client, to_local, to_client), (self._local, to_client, to_local))
        for side, incoming, outgoing in sides:
            events = (0 if incoming.is_full() else _READ) | (select.POLLOUT if outgoing.held else 0)
            if events:
                self._poll.register(side, events)
            else:
                with suppress(KeyError):
                    self._poll.unregister(side)
        ready = dict(self._poll.poll())
        alive = all(
            direction.forward()
            for direction in (to_client, to_local)
            if ready.get(direction.source.fileno(), 0) & _READ
        )
        to_client.flush()
        to_local.flush()
        return alive


class _Direction:
    """Bytes of one side on their way to the other."""

    def __init__(self, source: socket.socket, sink: socket.socket, early: bytes = b"") -> None:
        self.source, self._sink = source, sink
        self.held = bytearray(early)

    def is_full(self) -> bool:
        return len(self.held) >= MAX_HELD

    def forward(self) -> bool:
        """Read what has arrived and send it; return whether the source is still open."""
        while not self.is_full():
            try:
                data = self.source.recv(CHUNK)
            except _WOULD_BLOCK:
                break
            self.held += data
            self.flush()
            if not data:
                return False
            # One call returns a whole TLS record, so after a shorter one nothing is left that poll
            # would not report. Another call would only fail, at the cost of a system call.
            if len(data) < TLS_RECORD:
                break
        return True

    def flush(self) -> None:
        """Send as much as the other side accepts now."""
        while self.held:
            try:
                # TLS requires the same bytes again after it would block, so never fewer.
                sent = self._sink.send(self.held[:CHUNK])
            except _WOULD_BLOCK:
                return
            del self.held[:sent]
