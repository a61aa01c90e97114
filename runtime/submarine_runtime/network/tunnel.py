"""Raw bytes between a client on the job's port and what the program has declared in its container.

One tunnel is one TLS connection and one thread, which holds at most ``MAX_HELD`` bytes for a side
that does not take them: whoever is slow slows the other side down, as without a tunnel. Who may
ask, and for what, is ``answers`` and ``protocol.tunnels``.
"""

from __future__ import annotations

import os
import select
import socket
import ssl
import threading
from contextlib import suppress

from submarine_runtime.protocol.tunnels import Target, declared

#: Tunnels of one job at once; each client of a kernel takes five.
MAX_TUNNELS = 128
#: Bytes held for a side that does not take them.
MAX_HELD = 1 << 18
CHUNK = 1 << 16
#: Seconds that the program's socket may take to accept.
CONNECT_SECONDS = 5.0
#: Seconds after which a side that was sent something and is silent counts as gone.
SILENCE_SECONDS = 60
#: Nothing now, in plain or in TLS.
_LATER = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
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
        """Connect to what the program calls ``name``; None if it has declared nothing so called.

        Raises
        ------
        ValueError
            If what it has declared makes no sense.
        OSError
            If nobody accepts there, or there are too many tunnels.
        """
        target = declared(self._root, name)
        if target is None:
            return None
        if not self._slots.acquire(blocking=False):
            raise OSError(f"there are {MAX_TUNNELS} tunnels already")
        try:
            return _connect(self._root, target)
        except BaseException:
            self._slots.release()
            raise

    def carry(self, client: ssl.SSLSocket, local: socket.socket) -> None:
        """Carry bytes both ways until one side has ended; ``local`` came from ``open``."""
        try:
            keep_alive(client)
            Carrier(client, local).run()
        finally:
            self.close(local)

    def close(self, local: socket.socket) -> None:
        """Give up what came from ``open`` and was not carried."""
        with suppress(OSError):
            local.close()
        self._slots.release()


def _connect(root: str, target: Target) -> socket.socket:
    if target.port:
        made = socket.create_connection(("127.0.0.1", target.port), CONNECT_SECONDS)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return made
    # Paths of containers are longer than the 107 bytes that an address may have.
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
    """No delay for what is small, and an end for what is cut."""
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


class Carrier:
    """One tunnel at work; a single thread, since a TLS connection is not to be shared by two.

    Parameters
    ----------
    local
        The program's side, or an agent's that is asked for it, in TLS too.
    early
        What has come from there already.
    """

    def __init__(self, client: ssl.SSLSocket, local: socket.socket, early: bytes = b"") -> None:
        self._client = client
        self._local = local
        self._to_client = bytearray(early)
        self._to_local = bytearray()
        self._poll = select.poll()

    def run(self) -> None:
        """Until one side has ended."""
        self._client.setblocking(False)
        self._local.setblocking(False)
        with suppress(OSError, ValueError):
            # What came along with the request, and with its answer.
            alive = self._from_local() and self._from_client()
            while alive:
                self._wait()
                alive = self._from_local() and self._from_client()
        with suppress(OSError, ValueError):
            self._client.settimeout(CONNECT_SECONDS)
            self._client.sendall(self._to_client)

    def _wait(self) -> None:
        """Until there is something to do; a full side is not read from."""
        client = select.POLLOUT if self._to_client else 0
        local = select.POLLOUT if self._to_local else 0
        if len(self._to_local) < MAX_HELD:
            client |= _READ
        if len(self._to_client) < MAX_HELD:
            local |= _READ
        for side, events in ((self._client, client), (self._local, local)):
            if events:
                self._poll.register(side, events)
            else:
                with suppress(KeyError):
                    self._poll.unregister(side)
        self._poll.poll()

    def _from_local(self) -> bool:
        """Take what the program has sent, and send on; whether its side is still there."""
        alive = True
        while alive and len(self._to_client) < MAX_HELD:
            try:
                data = self._local.recv(CHUNK)
            except _LATER:
                break
            alive = bool(data)
            self._to_client += data
            self._flush_client()
        self._flush_client()
        return alive

    def _from_client(self) -> bool:
        """Take what the client has sent, and send on; whether its side is still there."""
        alive = True
        while alive and len(self._to_local) < MAX_HELD:
            try:
                data = self._client.recv(CHUNK)
            except _LATER:
                break
            alive = bool(data)
            self._to_local += data
            self._flush_local()
        self._flush_local()
        return alive

    def _flush_client(self) -> None:
        while self._to_client:
            try:
                # The same bytes must be offered again where TLS wants to wait: so never fewer.
                sent = self._client.send(self._to_client[:CHUNK])
            except _LATER:
                return
            del self._to_client[:sent]

    def _flush_local(self) -> None:
        while self._to_local:
            try:
                sent = self._local.send(self._to_local[:CHUNK])
            except _LATER:
                return
            del self._to_local[:sent]
