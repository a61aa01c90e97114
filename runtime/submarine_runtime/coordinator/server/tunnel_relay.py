"""Tunnels of clients through the coordinator's port to the agent of a task.

The agent connects a tunnel with the port that the program has declared (``network.tunnel``). Each
tunnel has its own thread; the number of threads is limited.
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

    def open(
        self, client: ssl.SSLSocket, query: Mapping[str, str], done: Callable[[], None]
    ) -> int:
        """Open a tunnel; a thread relays its bytes and calls ``done`` at the end.

        Returns
        -------
        int
            0 if the tunnel is open and the response was sent; otherwise the status of the response.
        """
        endpoint = self._endpoint(query.get("task", ""))
        if endpoint is None:
            return 404
        if not self._slots.acquire(blocking=False):
            return 503
        agent = None
        try:
            agent, head, rest = self._connect(endpoint, query.get("name", ""))
            status = response_status(head)
            if status != 101:
                raise _RefusedError(status if status in _PASSED_ON else 502)
            client.sendall(head + HEAD_END)
            threading.Thread(
                target=self._relay, args=(client, agent, rest, done), daemon=True
            ).start()
        except _RefusedError as exc:
            self._end(agent)
            return exc.status
        except (OSError, RuntimeError):
            self._end(agent)
            return 503
        return 0

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

    def _relay(
        self, client: ssl.SSLSocket, agent: ssl.SSLSocket, rest: bytes, done: Callable[[], None]
    ) -> None:
        try:
            with suppress(OSError):
                keep_alive(client)
                keep_alive(agent)
                TunnelForwarder(client, agent, rest).run()
        finally:
            self._end(agent)
            done()

    def _end(self, agent: ssl.SSLSocket | None) -> None:
        if agent is not None:
            with suppress(OSError):
                agent.close()
        self._slots.release()


class _RefusedError(Exception):
    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status
