"""The listener of a job's port: clients' requests and agents' links over non-blocking TLS.

One thread serves all connections. A connection without the job's token is closed after ten seconds
at the latest. ``on_request`` receives a request with its socket, ``on_line`` the lines of a link.
"""

from __future__ import annotations

import json
import selectors
import socket
import sys
import threading
import traceback
from typing import Any, Callable, Mapping

from submarine_runtime.network import ConnectionLimit
from submarine_runtime.port.http_messages import (
    Request,
    has_token,
    head_error,
    parse_request_head,
    response,
)
from submarine_runtime.port.tls_channel import TlsChannel, port_context
from submarine_runtime.protocol import LINK_PROTOCOL, MAX_LINK_LINE, read_link_line, wire
from submarine_runtime.suspend import monotonic

#: Seconds within which a connection must present the token.
AUTHENTICATION_SECONDS = 10.0
MAX_ACCEPTS = 32
#: Maximum number of connections without the token: from one address, and in total. A new one
#: replaces the oldest. More than a client opens at once: some twenty tunnels when a page is
#: reloaded.
MAX_UNAUTHENTICATED, MAX_UNAUTHENTICATED_OVERALL = 32, 128
#: Malformed messages that are written to the log; later ones only close their connection.
MAX_REPORTS = 20
_SWITCH = (
    f"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: {LINK_PROTOCOL}\r\n\r\n"
)


class Connection:
    """One connection; a link of an agent if ``linked``.

    The owner of the links sets ``seat``. An answered connection is read to its end, so that its
    peer receives the response.
    """

    __slots__ = ("answered", "buffer", "channel", "linked", "mask", "seat", "since")

    def __init__(self, channel: TlsChannel, now: float) -> None:
        self.channel = channel
        self.buffer = bytearray()
        self.linked = self.answered = False
        self.seat = ""
        self.since = now
        self.mask = selectors.EVENT_READ


class PortServer:
    """Serve the connections of a listening socket.

    Parameters
    ----------
    listener
        See ``bind_port``.
    secret
        ``token``, ``certificate`` and ``key`` of the job.
    per_address, overall
        Maximum number of connections without the token.
    """

    def __init__(
        self,
        listener: socket.socket,
        secret: Mapping[str, str],
        per_address: int = MAX_UNAUTHENTICATED,
        overall: int = MAX_UNAUTHENTICATED_OVERALL,
    ) -> None:
        self._token = secret["token"].encode()
        self._context = port_context(secret)
        self._on_line: Callable[[Connection, dict[str, Any]], None] | None = None
        self._on_closed: Callable[[Connection], None] = _ignore
        self._on_request: Callable[[Request], None] = _ignore
        self._unauthenticated: ConnectionLimit[Connection] = ConnectionLimit(per_address, overall)
        self._reports = 0
        self._listener = listener
        self._listener.setblocking(False)
        self.port = int(self._listener.getsockname()[1])
        self._wake_reader, self._wake_writer = socket.socketpair()
        for end in (self._wake_reader, self._wake_writer):
            end.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ, None)
        self._selector.register(self._wake_reader, selectors.EVENT_READ, self._wake_reader)

    def set_handlers(
        self,
        on_request: Callable[[Request], None],
        on_line: Callable[[Connection, dict[str, Any]], None] | None = None,
        on_closed: Callable[[Connection], None] | None = None,
    ) -> None:
        """Set the handlers; call this before ``poll``.

        Parameters
        ----------
        on_request
            Called with a client's request; takes over its socket.
        on_line
            Called with the connection of a link and a JSON object; None: there are no links here.
        on_closed
            Called once with the connection of a link that was closed.
        """
        self._on_line, self._on_request = on_line, on_request
        self._on_closed = on_closed or _ignore

    def serve_in_background(self) -> None:
        """Serve in a thread until the process ends."""

        def serve() -> None:
            while True:
                self.poll(AUTHENTICATION_SECONDS / 2)
                self.close_unauthenticated(monotonic())

        threading.Thread(target=serve, name="server", daemon=True).start()

    @property
    def wake_fd(self) -> int:
        """File descriptor for ``signal.set_wakeup_fd``."""
        return self._wake_writer.fileno()

    def wake(self) -> None:
        """End a ``poll`` early; from any thread."""
        try:
            self._wake_writer.send(b"\0")
        except OSError:
            pass  # The loop is awake already, or the server is closed.

    def poll(self, seconds: float) -> None:
        """Serve connections; wait at most ``seconds`` for the first one."""
        for key, mask in self._selector.select(max(0.0, seconds)):
            if key.data is None:
                self._accept()
            elif key.data is self._wake_reader:
                self._drain()
            else:
                self._serve(key.data, mask)

    def close_unauthenticated(self, now: float) -> None:
        """Close connections that have not presented the token in time."""
        for connection in self._unauthenticated.older_than(now - AUTHENTICATION_SECONDS):
            self.close(connection)

    def send(self, connection: Connection, line: Mapping[str, Any]) -> None:
        """Send one line on a link; a link that cannot be written is closed."""
        self.send_bytes(connection, json.dumps(line).encode() + b"\n")

    def send_bytes(self, connection: Connection, data: bytes) -> None:
        """Send an encoded line on a link."""
        try:
            connection.channel.send(data)
        except (OSError, BufferError):
            self.close(connection)
            return
        self._watch(connection)

    def close(self, connection: Connection) -> None:
        """Close a connection; calls ``on_closed`` for a link."""
        if not connection.channel.open:
            return
        self._unauthenticated.remove(connection)
        self._selector.unregister(connection.channel.sock)
        connection.channel.close()
        if connection.linked:
            self._on_closed(connection)

    def stop(self) -> None:
        """Close the port and every connection without a message."""
        for key in list(self._selector.get_map().values()):
            if isinstance(key.data, Connection):
                key.data.channel.close()
        self._selector.close()
        for end in (self._listener, self._wake_reader, self._wake_writer):
            end.close()

    def _drain(self) -> None:
        try:
            while self._wake_reader.recv(4096):
                pass
        except OSError:
            pass

    def _accept(self) -> None:
        for _ in range(MAX_ACCEPTS):
            try:
                sock, address = self._listener.accept()
            except OSError:
                return  # No connection waits, or no file descriptor is left.
            now = monotonic()
            try:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                connection = Connection(TlsChannel(sock, self._context), now)
            except (OSError, ValueError):  # The client has reset the connection already.
                sock.close()
                continue
            self._selector.register(connection.channel.sock, connection.mask, connection)
            for replaced in self._unauthenticated.add(connection, address[0], now):
                self.close(replaced)

    def _serve(self, connection: Connection, mask: int) -> None:
        channel = connection.channel
        try:
            if not channel.ready and not channel.handshake():
                self._watch(connection)
                return
            if mask & selectors.EVENT_WRITE:
                channel.flush()
            self._read(connection, channel.receive())
        except (OSError, BufferError):
            if not channel.ready:
                channel.discard()
            self.close(connection)
            return
        except Exception as exc:  # One malformed message must not end the job.
            self._report(connection, exc)
            self.close(connection)
            return
        if channel.open:
            self._watch(connection)

    def _report(self, connection: Connection, error: Exception) -> None:
        """Write to the log why a link is closed; unauthenticated connections are not reported."""
        if not connection.linked or self._reports >= MAX_REPORTS:
            return
        self._reports += 1
        if isinstance(error, ValueError):
            why = str(error)[:300]
        else:
            why = "".join(traceback.format_exception(type(error), error, error.__traceback__))[
                -4000:
            ]
        sys.stderr.write(
            f"submarine coordinator: the connection of {connection.seat[:100] or 'an agent'} is "
            f"closed after a malformed message: {why}\n"
        )
        sys.stderr.flush()

    def _read(self, connection: Connection, data: bytes) -> None:
        if connection.answered:
            return
        connection.buffer += data
        if not connection.linked and not self._read_head(connection):
            return
        while connection.channel.open and self._on_line is not None:
            end = connection.buffer.find(b"\n")
            if end < 0:
                if len(connection.buffer) > MAX_LINK_LINE:
                    raise ValueError("the line is too long")
                return
            line = read_link_line(bytes(connection.buffer[:end]))
            del connection.buffer[: end + 1]
            self._on_line(connection, line)

    def _read_head(self, connection: Connection) -> bool:
        """Read the request's head; return whether the connection is a link."""
        head, gap, rest = bytes(connection.buffer).partition(b"\r\n\r\n")
        error = head_error(head)
        if error or not gap:
            if error:
                self._answer(connection, error)
            return False
        method, target, headers = parse_request_head(head)
        if not has_token(headers, self._token):
            self._answer(connection, 401)
            return False
        if target != wire.LINK or self._on_line is None:
            self._pass_request(
                connection, Request(connection.channel, method, target, headers, rest)
            )
            return False
        if headers.get("upgrade", "").lower() != LINK_PROTOCOL:
            self._answer(connection, 400)
            return False
        self._unauthenticated.remove(connection)
        connection.linked, connection.buffer = True, bytearray(rest)
        connection.channel.send(_SWITCH.encode())
        return True

    def _answer(self, connection: Connection, code: int) -> None:
        connection.channel.send(response(code))
        connection.channel.end()
        connection.answered, connection.buffer = True, bytearray()

    def _pass_request(self, connection: Connection, request: Request) -> None:
        self._unauthenticated.remove(connection)
        self._selector.unregister(connection.channel.sock)
        self._on_request(request)

    def _watch(self, connection: Connection) -> None:
        if not connection.channel.open or (
            not connection.linked and connection not in self._unauthenticated
        ):
            return
        write = selectors.EVENT_WRITE if connection.channel.wants_write else 0
        if connection.mask != selectors.EVENT_READ | write:
            connection.mask = selectors.EVENT_READ | write
            self._selector.modify(connection.channel.sock, connection.mask, connection)


def _ignore(*arguments: object) -> None:
    """Handle nothing, before ``set_handlers``."""
