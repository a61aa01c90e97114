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
from submarine_runtime.network import (
    HEAD_END,
    MAX_TUNNELS,
    TunnelForwarder,
    keep_alive,
    request_head,
    response_status,
)
from submarine_runtime.port import RefusedError
from submarine_runtime.protocol import wire
from submarine_runtime.protocol.tunnels import PROTOCOL

#: Seconds for an agent's answer.
OPEN_SECONDS = 10.0
_MAX_HEAD = 1 << 14
#: Rejections of an agent that the client receives.
_PASSED_ON = (404, 409, 426, 503)


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
            status = response_status(head)
            if status != 101:
                raise RefusedError(status if status in _PASSED_ON else 502)
            client.sendall(head + HEAD_END)
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
            target = f"{wire.TUNNEL}?{urlencode({'name': name})}"
            agent.sendall(request_head(target, self._token, PROTOCOL))
            answer = bytearray()
            while HEAD_END not in answer:
                data = agent.recv(4096)
                if not data or len(answer) > _MAX_HEAD:
                    raise ConnectionResetError("the agent gave no answer")
                answer += data
        except BaseException:
            agent.close()
            raise
        head, _, rest = bytes(answer).partition(HEAD_END)
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
