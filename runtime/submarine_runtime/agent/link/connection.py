"""One connection to the coordinator: TLS with the job's certificate, upgrade, lines of JSON.

Only the connection attempt blocks. ``client`` interprets the lines.
"""

from __future__ import annotations

import socket
import ssl
import time
from typing import Any, Mapping

from submarine_runtime.network import HEAD_END, client_context, request_head, response_status
from submarine_runtime.protocol import (
    LINK_PROTOCOL,
    MAX_LINK_LINE,
    check_order,
    read_link_line,
    wire,
)

_MAX_HEAD = 8192
_READ = 1 << 16


class RefusedError(Exception):
    """The coordinator rejected the upgrade with an HTTP response; one sentence."""


class LinkConnection:
    """Lines of JSON over a non-blocking socket."""

    def __init__(self, connection: ssl.SSLSocket, received: bytes = b"") -> None:
        connection.setblocking(False)
        self._connection = connection
        self._received = bytearray(received)
        self._sending = bytearray()
        #: The address of this task as the coordinator sees it.
        self.address = str(connection.getsockname()[0])

    def fileno(self) -> int:
        """Return the descriptor for ``select``."""
        return self._connection.fileno()

    @property
    def unsent(self) -> int:
        """Number of bytes that are not sent yet."""
        return len(self._sending)

    def queue(self, line: bytes) -> None:
        """Send a line as soon as possible."""
        self._sending += line

    def flush(self) -> None:
        """Send what the socket accepts now; raise OSError if the link is closed."""
        while self._sending:
            try:
                sent = self._connection.send(self._sending)
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                return
            del self._sending[:sent]

    def receive(self) -> list[dict[str, Any]]:
        """Return the received lines; raise OSError if the link is closed or a line is malformed."""
        over = False
        while not over and len(self._received) <= 2 * MAX_LINK_LINE:
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
        if end == 0 and len(self._received) > MAX_LINK_LINE:
            raise ConnectionError("the coordinator sent too long a line")
        raw = bytes(self._received[:end]).split(b"\n")
        del self._received[:end]
        try:
            parsed = [read_link_line(line) for line in raw if line]
            for line in parsed:
                check_order(line)
        except ValueError as exc:
            raise ConnectionError(f"the coordinator sent a malformed line: {exc}") from exc
        return parsed

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def connect(address: tuple[str, int], secret: Mapping[str, str], timeout: float) -> LinkConnection:
    """Open a link.

    Parameters
    ----------
    secret
        ``token`` and ``certificate``.
    timeout
        Seconds for the whole operation.

    Raises
    ------
    OSError
        If the connection fails, or its certificate is not the job's.
    RefusedError
        If the coordinator responds with anything but ``101``.
    """
    deadline = time.monotonic() + timeout
    plain = socket.create_connection(address, timeout)
    try:
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        plain.settimeout(max(0.05, deadline - time.monotonic()))
        secure = client_context(secret["certificate"]).wrap_socket(plain)
    except BaseException:
        plain.close()
        raise
    try:
        secure.sendall(request_head(wire.LINK, secret["token"], LINK_PROTOCOL))
        return LinkConnection(secure, _upgraded(secure, deadline))
    except BaseException:
        secure.close()
        raise


def _upgraded(secure: ssl.SSLSocket, deadline: float) -> bytes:
    """Read the head of the response; return the bytes after it."""
    head = b""
    while HEAD_END not in head:
        secure.settimeout(max(0.05, deadline - time.monotonic()))
        data = secure.recv(4096)
        if not data or len(head) > _MAX_HEAD:
            raise ConnectionError("the coordinator did not answer as expected")
        head += data
    head, _, rest = head.partition(HEAD_END)
    if response_status(head) != 101:
        raise RefusedError("the coordinator answered {!r}".format(head[:80].decode("latin-1")))
    return rest
