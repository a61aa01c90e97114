"""Read the live stream of one task's agent without blocking."""

from __future__ import annotations

import selectors
import socket
import ssl
from typing import Iterator, NamedTuple

from submarine_runtime.network import HEAD_END, request_head, response_status
from submarine_runtime.port import TlsChannel
from submarine_runtime.protocol import wire

#: Longest line of an agent.
MAX_LINE = 1 << 20


class AgentStreamError(Exception):
    """The agent has closed the stream or sent invalid data."""


class AgentEndpoint(NamedTuple):
    """Address of a task's agent, and the attempt that it runs."""

    host: str
    port: int
    epoch: int
    attempt: int


class AgentStream:
    """One connection to an agent.

    Parameters
    ----------
    query
        Query of ``GET /v1/stream``.

    Raises
    ------
    AgentStreamError
        If the address is invalid.
    """

    def __init__(
        self, task: str, endpoint: AgentEndpoint, context: ssl.SSLContext, token: str, query: str
    ) -> None:
        self.task, self.endpoint = task, endpoint
        connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        connection.setblocking(False)
        try:
            connection.connect((endpoint.host, endpoint.port))
        except BlockingIOError:
            pass
        except OSError as exc:
            connection.close()
            raise AgentStreamError from exc
        except (ValueError, OverflowError) as exc:  # Not an address.
            connection.close()
            raise AgentStreamError from exc
        self.channel = TlsChannel(connection, context, server_side=False)
        self.channel.send(request_head(f"{wire.STREAM}?{query}", token))
        self.mask = selectors.EVENT_READ | selectors.EVENT_WRITE
        self._buffer = bytearray()
        self._head_read = False

    def serve(self, mask: int) -> Iterator[bytes]:
        """Yield the received lines.

        Raises
        ------
        AgentStreamError
            If the agent has closed the stream, refuses it or sends invalid data.
        """
        try:
            if self.channel.handshake():
                if mask & selectors.EVENT_WRITE:
                    self.channel.flush()
                self._buffer += self.channel.receive()
        except OSError as exc:
            raise AgentStreamError from exc
        if self._head_read or self._read_head():
            yield from self._lines()

    def new_mask(self) -> bool:
        """Set ``mask`` to the events that the connection waits for; return whether it changed."""
        write = selectors.EVENT_WRITE if self.channel.wants_write else 0
        before, self.mask = self.mask, selectors.EVENT_READ | write
        return before != self.mask

    def _read_head(self) -> bool:
        head, gap, rest = bytes(self._buffer).partition(HEAD_END)
        if not gap:
            return False
        if response_status(head) != 200:
            raise AgentStreamError
        self._head_read, self._buffer = True, bytearray(rest)
        return True

    def _lines(self) -> Iterator[bytes]:
        while True:
            end = self._buffer.find(b"\n")
            if end < 0:
                if len(self._buffer) > MAX_LINE:
                    raise AgentStreamError
                return
            line = bytes(self._buffer[:end])
            del self._buffer[: end + 1]
            yield line
