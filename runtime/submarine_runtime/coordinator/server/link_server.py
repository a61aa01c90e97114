"""The coordinator's port: one thread, non-blocking TLS, agents' links and viewers' requests.

Whoever has no token gets no further than 401 and no longer than ten seconds; a link's lines go to
``on_line``, any other request, with its socket, to ``on_request``. Decides nothing.
"""

from __future__ import annotations

import json
import selectors
import socket
import sys
import traceback
from typing import Any, Callable, Mapping

from submarine_runtime.coordinator.server.http_messages import (
    BAD,
    REFUSED,
    Request,
    knows_token,
    parse_head,
)
from submarine_runtime.coordinator.server.tls_channel import Channel, link_context
from submarine_runtime.network import ConnectionLimit
from submarine_runtime.protocol import wire
from submarine_runtime.protocol.link import MAX_LINE, PROTOCOL
from submarine_runtime.protocol.link_validation import read_line
from submarine_runtime.suspend import monotonic

#: Seconds within which a connection must have shown the token.
GREETING_SECONDS = 10.0
MAX_HEAD = 8192
ACCEPTS_AT_ONCE = 32
#: Connections from one address that have not shown the token, at least: all tasks of a job may run
#: on one node. In all there may be twice as many.
MIN_UNAUTHENTICATED = 128
#: Malformed messages that are written to the log; later ones only end their connection.
MAX_REPORTS = 20
_SWITCH = f"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: {PROTOCOL}\r\n\r\n"


class Peer:
    """One connection; a link once ``linked``. ``seat`` is set by whoever hears its lines."""

    __slots__ = ("buffer", "channel", "linked", "mask", "seat", "since")

    def __init__(self, channel: Channel, now: float) -> None:
        self.channel = channel
        self.buffer = bytearray()
        self.linked = False
        self.seat = ""
        self.since = now
        self.mask = selectors.EVENT_READ


class LinkServer:
    """The port.

    Parameters
    ----------
    port
        0: any free one.
    on_line
        Called with a link's peer and a JSON object.
    on_closed
        Called once with the peer of a link that broke.
    on_request
        Takes a viewer's request over, socket and all.
    most
        Most tasks of the job: so many may knock at once.

    Raises
    ------
    OSError
        If the port is taken.
    """

    def __init__(
        self,
        listen: str,
        port: int,
        secret: Mapping[str, str],
        on_line: Callable[[Peer, dict[str, Any]], None],
        on_closed: Callable[[Peer], None],
        on_request: Callable[[Request], None],
        most: int,
    ) -> None:
        self._token = secret["token"].encode()
        self._context = link_context(secret)
        self._on_line, self._on_closed, self._on_request = on_line, on_closed, on_request
        per_address = max(MIN_UNAUTHENTICATED, 2 * most)
        self._unauthenticated: ConnectionLimit[Peer] = ConnectionLimit(per_address, 2 * per_address)
        self._reports = 0
        self._listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._listener.bind((listen, port))
        except OSError:
            self._listener.close()
            raise
        self._listener.listen(1024)
        self._listener.setblocking(False)
        self.port = int(self._listener.getsockname()[1])
        self._wake_reader, self._wake_writer = socket.socketpair()
        for end in (self._wake_reader, self._wake_writer):
            end.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ, None)
        self._selector.register(self._wake_reader, selectors.EVENT_READ, self._wake_reader)

    @property
    def wake_fd(self) -> int:
        """For ``signal.set_wakeup_fd``."""
        return self._wake_writer.fileno()

    def wake(self) -> None:
        """End a ``poll`` early; from any thread."""
        try:
            self._wake_writer.send(b"\0")
        except OSError:
            pass  # awake many times over, or closed

    def poll(self, seconds: float) -> None:
        """Serve what there is to serve for at most ``seconds``, then return."""
        for key, mask in self._selector.select(max(0.0, seconds)):
            if key.data is None:
                self._accept()
            elif key.data is self._wake_reader:
                self._drain()
            else:
                self._serve(key.data, mask)

    def expel(self, now: float) -> None:
        """Close what has been connected for long without showing the token."""
        for peer in self._unauthenticated.older_than(now - GREETING_SECONDS):
            self.close(peer)

    def send(self, peer: Peer, line: Mapping[str, Any]) -> None:
        """Send one line on a link; a link that takes nothing is closed."""
        self.send_bytes(peer, json.dumps(line).encode() + b"\n")

    def send_bytes(self, peer: Peer, data: bytes) -> None:
        """The same, ready made."""
        try:
            peer.channel.send(data)
        except (OSError, BufferError):
            self.close(peer)
            return
        self._watch(peer)

    def close(self, peer: Peer) -> None:
        """Close a connection; ``on_closed`` is told of a link."""
        if not peer.channel.open:
            return
        self._unauthenticated.remove(peer)
        self._selector.unregister(peer.channel.sock)
        peer.channel.close()
        if peer.linked:
            self._on_closed(peer)

    def stop(self) -> None:
        """Close the port and every connection, without a word to anybody."""
        for key in list(self._selector.get_map().values()):
            if isinstance(key.data, Peer):
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
        for _ in range(ACCEPTS_AT_ONCE):
            try:
                connection, address = self._listener.accept()
            except OSError:
                return  # nobody is left, or no descriptor
            now = monotonic()
            try:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                peer = Peer(Channel(connection, self._context), now)
            except (OSError, ValueError):  # the client has reset the connection already
                connection.close()
                continue
            self._selector.register(peer.channel.sock, peer.mask, peer)
            for replaced in self._unauthenticated.add(peer, address[0], now):
                self.close(replaced)

    def _serve(self, peer: Peer, mask: int) -> None:
        channel = peer.channel
        try:
            if not channel.ready and not channel.shake():
                self._watch(peer)
                return
            if mask & selectors.EVENT_WRITE:
                channel.flush()
            self._hear(peer, channel.receive())
        except (OSError, BufferError):
            self.close(peer)
            return
        except Exception as exc:  # one malformed message must not end the job
            self._report(peer, exc)
            self.close(peer)
            return
        if channel.open:
            self._watch(peer)

    def _report(self, peer: Peer, error: Exception) -> None:
        """Write to the log why a connection is closed; strangers' requests are not reported."""
        if not peer.linked or self._reports >= MAX_REPORTS:
            return
        self._reports += 1
        if isinstance(error, ValueError):
            why = str(error)[:300]
        else:
            why = "".join(traceback.format_exception(type(error), error, error.__traceback__))[
                -4000:
            ]
        sys.stderr.write(
            f"submarine coordinator: the connection of {peer.seat[:100] or 'an agent'} is closed "
            f"after a malformed message: {why}\n"
        )
        sys.stderr.flush()

    def _hear(self, peer: Peer, data: bytes) -> None:
        peer.buffer += data
        if not peer.linked and not self._greet(peer):
            return
        while peer.channel.open:
            end = peer.buffer.find(b"\n")
            if end < 0:
                if len(peer.buffer) > MAX_LINE:
                    raise ValueError("the line is too long")
                return
            line = read_line(bytes(peer.buffer[:end]))
            del peer.buffer[: end + 1]
            self._on_line(peer, line)

    def _greet(self, peer: Peer) -> bool:
        """Read the request's head; True once the peer is a link."""
        head, gap, rest = bytes(peer.buffer).partition(b"\r\n\r\n")
        if not gap:
            if len(peer.buffer) > MAX_HEAD:
                raise ValueError("the head is too long")
            return False
        method, target, headers = parse_head(head)
        if not knows_token(headers, self._token):
            self._answer(peer, REFUSED)
            return False
        if target != wire.LINK:
            self._hand_over(peer, Request(peer.channel, method, target, headers, rest))
            return False
        if headers.get("upgrade", "").lower() != PROTOCOL:
            self._answer(peer, BAD)
            return False
        self._unauthenticated.remove(peer)
        peer.linked, peer.buffer = True, bytearray(rest)
        peer.channel.send(_SWITCH.encode())
        return True

    def _answer(self, peer: Peer, data: bytes) -> None:
        peer.channel.send(data)
        self.close(peer)

    def _hand_over(self, peer: Peer, request: Request) -> None:
        self._unauthenticated.remove(peer)
        self._selector.unregister(peer.channel.sock)
        self._on_request(request)

    def _watch(self, peer: Peer) -> None:
        if not peer.channel.open or (not peer.linked and peer not in self._unauthenticated):
            return
        write = selectors.EVENT_WRITE if peer.channel.wants_write else 0
        if peer.mask != selectors.EVENT_READ | write:
            peer.mask = selectors.EVENT_READ | write
            self._selector.modify(peer.channel.sock, peer.mask, peer)
