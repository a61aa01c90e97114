"""One TLS connection that never blocks: bytes in, bytes out, bounded memory.

For the link server and for following agents; knows no protocol.
"""

from __future__ import annotations

import socket
import ssl
from typing import Mapping

from submarine_runtime.network import server_context

READ_BYTES = 16384
#: A reader that lets this much wait is no reader.
MAX_OUT = 8 << 20


class Channel:
    """A socket in TLS; ``receive`` and ``send`` return at once.

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
        """For a selector."""
        return self.sock.fileno()

    def shake(self) -> bool:
        """Go on with the handshake; True once it is done, False as long as it needs more.

        Raises
        ------
        OSError
            If the other side speaks no TLS, or not with our certificate.
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
        """All that has come, at most about ``limit`` bytes; empty when nothing has.

        Raises
        ------
        OSError
            If the other side is gone.
        """
        pieces: list[bytes] = []
        size = 0
        # What TLS has decrypted already would never show in a selector again.
        while size < limit or self.sock.pending():
            try:
                data = self.sock.recv(READ_BYTES)
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                break
            if not data:
                if pieces:
                    break  # the end is met again at the next call
                raise ConnectionResetError("the other side closed the connection")
            pieces.append(data)
            size += len(data)
            if len(data) < READ_BYTES and not self.sock.pending():
                break
        return b"".join(pieces)

    def send(self, data: bytes) -> None:
        """Send now or, what cannot go now, with later calls of ``flush``.

        Raises
        ------
        OSError
            If the other side is gone, or does not read.
        """
        if len(self._out) + len(data) > MAX_OUT:
            raise BufferError("the other side does not read")
        self._out += data
        if self.ready:
            self.flush()

    def flush(self) -> None:
        """Send what waits, as far as that goes."""
        while self._out:
            try:
                sent = self.sock.send(self._out[:READ_BYTES])
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                break
            del self._out[:sent]
        self.wants_write = bool(self._out)

    def close(self) -> None:
        """Close; may be called twice."""
        if self.open:
            self.open = False
            self.sock.close()


def link_context(secret: Mapping[str, str]) -> ssl.SSLContext:
    """TLS with the job's certificate, for very many agents."""
    context = server_context(secret)
    # An agent that comes back brings no ticket; tickets would only cost memory and bytes.
    context.num_tickets = 0
    return context


def client_context(secret: Mapping[str, str]) -> ssl.SSLContext:
    """TLS that accepts the job's certificate and no other."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = False  # the certificate itself is pinned
    context.load_verify_locations(cadata=secret["certificate"])
    return context
