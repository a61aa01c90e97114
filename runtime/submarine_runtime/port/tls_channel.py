"""A non-blocking TLS connection: bytes in, bytes out, bounded memory."""

from __future__ import annotations

import socket
import ssl
from contextlib import suppress
from typing import Mapping

from submarine_runtime.network import server_context

READ_BYTES = 16384
#: Bytes that may wait to be sent; with more the connection is closed.
MAX_OUT = 8 << 20


class TlsChannel:
    """A TLS socket; ``receive`` and ``send`` return at once.

    Parameters
    ----------
    connection
        A connected (or connecting) socket; it is made non-blocking.
    """

    __slots__ = ("_out", "open", "ready", "sock", "wants_write")

    def __init__(
        self, connection: socket.socket, context: ssl.SSLContext, server_side: bool = True
    ) -> None:
        connection.setblocking(False)
        self.sock = context.wrap_socket(
            connection, server_side=server_side, do_handshake_on_connect=False
        )
        self._out = bytearray()
        self.ready = False
        self.open = True
        self.wants_write = not server_side

    def fileno(self) -> int:
        """Return the file descriptor, for a selector."""
        return self.sock.fileno()

    def handshake(self) -> bool:
        """Continue the handshake; return whether it is complete.

        Raises
        ------
        OSError
            If the peer does not use TLS or the job's certificate.
        """
        if not self.ready:
            try:
                self.sock.do_handshake()
                self.ready, self.wants_write = True, bool(self._out)
            except ssl.SSLWantReadError:
                self.wants_write = False
            except ssl.SSLWantWriteError:
                self.wants_write = True
        return self.ready

    def receive(self, limit: int = 1 << 18) -> bytes:
        """Return the received data, at most about ``limit`` bytes; empty if there is none.

        Raises
        ------
        OSError
            If the peer has closed the connection.
        """
        pieces: list[bytes] = []
        size = 0
        # A selector does not report data that is already decrypted.
        while size < limit or self.sock.pending():
            try:
                data = self.sock.recv(READ_BYTES)
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                break
            if not data:
                if pieces:
                    break  # The next call finds the end again.
                raise ConnectionResetError("the peer closed the connection")
            pieces.append(data)
            size += len(data)
            if len(data) < READ_BYTES and not self.sock.pending():
                break
        return b"".join(pieces)

    def send(self, data: bytes) -> None:
        """Send now; what cannot be sent now is sent by later calls of ``flush``.

        Raises
        ------
        OSError
            If the peer has closed the connection or does not read.
        """
        if len(self._out) + len(data) > MAX_OUT:
            raise BufferError("the peer does not read")
        self._out += data
        if self.ready:
            self.flush()

    def flush(self) -> None:
        """Send as much of the waiting data as possible."""
        while self._out:
            try:
                sent = self.sock.send(self._out[:READ_BYTES])
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                break
            del self._out[:sent]
        self.wants_write = bool(self._out)

    def end(self) -> None:
        """Send nothing more; the peer's data is still received."""
        # The shutdown of ssl.SSLSocket would continue without TLS.
        socket.socket.shutdown(self.sock, socket.SHUT_WR)

    def discard(self) -> None:
        """Discard received bytes that are no TLS: otherwise ``close`` resets the connection."""
        with suppress(OSError):
            socket.socket.recv(self.sock, READ_BYTES, socket.MSG_DONTWAIT)

    def close(self) -> None:
        """Close; may be called twice."""
        if self.open:
            self.open = False
            self.sock.close()


def port_context(secret: Mapping[str, str]) -> ssl.SSLContext:
    """Return a server context with the job's certificate, for many connections."""
    context = server_context(secret)
    # Agents and clients do not reuse session tickets; tickets would only cost memory.
    context.num_tickets = 0
    return context
