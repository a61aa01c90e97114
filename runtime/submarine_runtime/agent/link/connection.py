"""One connection to the coordinator: TLS with the job's certificate, the upgrade, lines of JSON.

Blocks while it is being opened and never afterwards. Does not know what the lines mean (``link``).
"""

from __future__ import annotations

import socket
import ssl
import time
from typing import Any, Mapping

from submarine_runtime.protocol import wire
from submarine_runtime.protocol.link import MAX_LINE, PROTOCOL
from submarine_runtime.protocol.link_validation import check_order, read_line

_MAX_HEAD = 8192
_READ = 1 << 16


class RefusedError(Exception):
    """The other side speaks HTTP and will not have us; one sentence."""


class Lines:
    """Lines of JSON over a socket that never blocks."""

    def __init__(self, connection: ssl.SSLSocket, received: bytes = b"") -> None:
        connection.setblocking(False)
        self._connection = connection
        self._received = bytearray(received)
        self._sending = bytearray()
        #: The address under which the coordinator sees us.
        self.address = str(connection.getsockname()[0])

    def fileno(self) -> int:
        """For ``select``."""
        return self._connection.fileno()

    @property
    def unsent(self) -> int:
        """Bytes that wait to be sent."""
        return len(self._sending)

    def queue(self, line: bytes) -> None:
        """Send a line as soon as that is possible."""
        self._sending += line

    def flush(self) -> None:
        """Send what the socket takes now; raises OSError when the link is gone."""
        while self._sending:
            try:
                sent = self._connection.send(self._sending)
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                return
            del self._sending[:sent]

    def receive(self) -> list[dict[str, Any]]:
        """The lines that have come; raises OSError when the link is gone or makes no sense."""
        over = False
        while not over and len(self._received) <= 2 * MAX_LINE:
            try:
                data = self._connection.recv(_READ)
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                break
            over = not data
            self._received += data
        lines = self._whole_lines()
        if over and not lines:
            raise ConnectionError("the coordinator closed the link")
        return lines

    def _whole_lines(self) -> list[dict[str, Any]]:
        end = self._received.rfind(b"\n") + 1
        if end == 0 and len(self._received) > MAX_LINE:
            raise ConnectionError("the coordinator sent too long a line")
        raw = bytes(self._received[:end]).split(b"\n")
        del self._received[:end]
        try:
            parsed = [read_line(line) for line in raw if line]
            for line in parsed:
                check_order(line)
        except ValueError as exc:
            raise ConnectionError(f"the coordinator sent a malformed line: {exc}") from exc
        return parsed

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def dial(address: tuple[str, int], secret: Mapping[str, str], timeout: float) -> Lines:
    """Open a link.

    Parameters
    ----------
    secret
        ``token`` and ``certificate``.
    timeout
        Seconds for all of it.

    Raises
    ------
    OSError
        If nobody is there, or somebody else.
    RefusedError
        If the coordinator answers anything but ``101``.
    """
    deadline = time.monotonic() + timeout
    plain = socket.create_connection(address, timeout)
    try:
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        plain.settimeout(max(0.05, deadline - time.monotonic()))
        secure = tls_context(secret).wrap_socket(plain)
    except BaseException:
        plain.close()
        raise
    try:
        request = (
            f"GET {wire.LINK} HTTP/1.1\r\nHost: submarine-job\r\nConnection: Upgrade\r\n"
            f"Upgrade: {PROTOCOL}\r\nAuthorization: Bearer {secret['token']}\r\n\r\n"
        )
        secure.sendall(request.encode())
        return Lines(secure, _upgraded(secure, deadline))
    except BaseException:
        secure.close()
        raise


def tls_context(secret: Mapping[str, str]) -> ssl.SSLContext:
    """A context that accepts one certificate only: the job's own."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # The certificate itself is pinned, so a host name would add nothing.
    context.check_hostname = False
    context.load_verify_locations(cadata=secret["certificate"])
    return context


def _upgraded(secure: ssl.SSLSocket, deadline: float) -> bytes:
    """Read the answer's head; what came behind it."""
    head = b""
    while b"\r\n\r\n" not in head:
        secure.settimeout(max(0.05, deadline - time.monotonic()))
        data = secure.recv(4096)
        if not data or len(head) > _MAX_HEAD:
            raise ConnectionError("the coordinator did not answer as expected")
        head += data
    head, _, rest = head.partition(b"\r\n\r\n")
    status = head.split(b"\r\n", 1)[0].split(b" ")
    if len(status) < 2 or status[1] != b"101":
        raise RefusedError("the coordinator answered {!r}".format(head[:80].decode("latin-1")))
    return rest
