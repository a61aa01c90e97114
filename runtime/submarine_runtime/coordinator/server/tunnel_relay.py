"""Tunnels of clients through the coordinator's port to the agent of a task.

The agent connects a tunnel with the port that the program has declared (``network.tunnel``). The
number of tunnels is limited.
"""

from __future__ import annotations

import socket
import ssl
import threading
from contextlib import suppress
from typing import Callable, Mapping
from urllib.parse import urlencode

from submarine_runtime.coordinator.server.agent_stream import AgentEndpoint
from submarine_runtime.network import MAX_TUNNELS, TunnelForwarder, keep_alive
from submarine_runtime.port import RefusedError
from submarine_runtime.protocol import wire
from submarine_runtime.protocol.tunnels import PROTOCOL

#: Seconds for an agent's answer.
OPEN_SECONDS = 10.0
_MAX_HEAD = 1 << 14


class TunnelRelay:
    """Opens tunnels to agents.

    Parameters
    ----------
    context
        Accepts the job's certificate.
    endpoints
        As in ``ClientRequests``.
    """

    def __init__(
        self,
        token: str,
        context: ssl.SSLContext,
        endpoints: Callable[[], dict[str, AgentEndpoint]],
    ) -> None:
        self._token, self._context, self._endpoints = token, context, endpoints
        self._slots = threading.BoundedSemaphore(MAX_TUNNELS)

    def open(self, client: ssl.SSLSocket, query: Mapping[str, str]) -> Callable[[], None]:
        """Open a tunnel and send the response; see ``PortRequests.open_tunnel``."""
        endpoint = self._endpoint(query.get("task", ""))
        if endpoint is None:
            raise RefusedError(404)
        if not self._slots.acquire(blocking=False):
            raise RefusedError(503)
        agent = None
        try:
            agent, head, rest = self._connect(endpoint, query.get("name", ""))
            code = _status(head)
            if code != 101:
                raise RefusedError(code)
            client.sendall(head + b"\r\n\r\n")
        except RefusedError:
            self._end(agent)
            raise
        except OSError as exc:
            self._end(agent)
            raise RefusedError(503) from exc
        opened = agent
        return lambda: self._relay(client, opened, rest)

    def _endpoint(self, task: str) -> AgentEndpoint | None:
        endpoints = self._endpoints()
        if task:
            return endpoints.get(task)
        return next(iter(endpoints.values())) if len(endpoints) == 1 else None

    def _connect(self, endpoint: AgentEndpoint, name: str) -> tuple[ssl.SSLSocket, bytes, bytes]:
        plain = socket.create_connection((endpoint.host, endpoint.port), OPEN_SECONDS)
        try:
            agent = self._context.wrap_socket(plain)
        except BaseException:
            plain.close()
            raise
        try:
            agent.sendall(
                f"GET {wire.TUNNEL}?{urlencode({'name': name})} HTTP/1.1\r\n"
                f"Authorization: Bearer {self._token}\r\n"
                f"Connection: Upgrade\r\nUpgrade: {PROTOCOL}\r\n\r\n".encode()
            )
            answer = bytearray()
            while b"\r\n\r\n" not in answer:
                data = agent.recv(4096)
                if not data or len(answer) > _MAX_HEAD:
                    raise ConnectionResetError("the agent gave no answer")
                answer += data
        except BaseException:
            agent.close()
            raise
        head, _, rest = bytes(answer).partition(b"\r\n\r\n")
        return agent, head, rest

    def _relay(self, client: ssl.SSLSocket, agent: ssl.SSLSocket, rest: bytes) -> None:
        try:
            with suppress(OSError):
                keep_alive(client)
                keep_alive(agent)
                TunnelForwarder(client, agent, rest).run()
        finally:
            self._end(agent)

    def _end(self, agent: ssl.SSLSocket | None) -> None:
        if agent is not None:
            with suppress(OSError):
                agent.close()
        self._slots.release()


def _status(head: bytes) -> int:
    words = head.split(None, 2)
    status = int(words[1]) if len(words) > 1 and words[1].isdigit() else 502
    return status if status in (101, 404, 409, 426, 503) else 502
