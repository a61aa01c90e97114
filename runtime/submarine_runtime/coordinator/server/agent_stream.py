"""The live stream of one task's agent, as a viewer's thread reads it; never blocks."""

from __future__ import annotations

import selectors
import socket
import ssl
from typing import Iterator, NamedTuple

from submarine_runtime.coordinator.server.tls_channel import Channel
from submarine_runtime.protocol import wire

#: Lines of an agent; larger ones are not its own.
MAX_LINE = 1 << 20


class AgentError(Exception):
    """The agent's side broke; the viewer's is fine."""


class Source(NamedTuple):
    """Where a task's agent listens, and the attempt that it runs."""

    host: str
    port: int
    epoch: int
    attempt: int


class Feed:
    """One connection to an agent.

    Parameters
    ----------
    query
        Of its ``GET /v1/stream``.

    Raises
    ------
    AgentError
        If its address makes no sense.
    """

    def __init__(
        self, task: str, source: Source, context: ssl.SSLContext, token: str, query: str
    ) -> None:
        self.task, self.source = task, source
        connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        connection.setblocking(False)
        try:
            connection.connect((source.host, source.port))
        except BlockingIOError:
            pass
        except OSError as exc:
            connection.close()
            raise AgentError from exc
        except (ValueError, OverflowError) as exc:  # no address
            connection.close()
            raise AgentError from exc
        self.channel = Channel(connection, context, server_side=False)
        self.channel.send(
            f"GET {wire.STREAM}?{query} HTTP/1.0\r\nAuthorization: Bearer {token}\r\n\r\n".encode()
        )
        self.mask = selectors.EVENT_READ | selectors.EVENT_WRITE
        self._buffer = bytearray()
        self._headed = False

    def serve(self, mask: int) -> Iterator[bytes]:
        """Lines that have come.

        Raises
        ------
        AgentError
            If the agent is gone, refuses, or makes no sense.
        """
        try:
            if self.channel.shake():
                if mask & selectors.EVENT_WRITE:
                    self.channel.flush()
                self._buffer += self.channel.receive()
        except OSError as exc:
            raise AgentError from exc
        if self._headed or self._head():
            yield from self._lines()

    def new_mask(self) -> bool:
        """Set ``mask`` to what the connection waits for now; whether that is something new."""
        write = selectors.EVENT_WRITE if self.channel.wants_write else 0
        before, self.mask = self.mask, selectors.EVENT_READ | write
        return before != self.mask

    def _head(self) -> bool:
        head, gap, rest = bytes(self._buffer).partition(b"\r\n\r\n")
        if not gap:
            return False
        if b" 200 " not in head.split(b"\r\n", 1)[0]:
            raise AgentError
        self._headed, self._buffer = True, bytearray(rest)
        return True

    def _lines(self) -> Iterator[bytes]:
        while True:
            end = self._buffer.find(b"\n")
            if end < 0:
                if len(self._buffer) > MAX_LINE:
                    raise AgentError
                return
            line = bytes(self._buffer[:end])
            del self._buffer[: end + 1]
            yield line
