"""A tunnel of a viewer through the coordinator's port: passed on to the agent of the one task.

The agent connects it with what the program has declared (``agent.tunnel``). One thread each, of
which there are few; nothing of what goes through is looked at.
"""

from __future__ import annotations

import socket
import ssl
import threading
from contextlib import suppress
from typing import Callable, Mapping
from urllib.parse import urlencode

from submarine_runtime.coordinator.server.agent_stream import Source
from submarine_runtime.network import MAX_TUNNELS, Carrier, keep_alive
from submarine_runtime.protocol import wire
from submarine_runtime.protocol.tunnels import PROTOCOL

#: Seconds that an agent has to answer.
OPEN_SECONDS = 10.0
_MAX_HEAD = 1 << 14


class Tunnelling:
    """Opens tunnels to agents.

    Parameters
    ----------
    context
        Accepts the job's certificate.
    sources
        As in ``viewers.Viewers``.
    """

    def __init__(
        self,
        token: str,
        context: ssl.SSLContext,
        sources: Callable[[], dict[str, Source]],
    ) -> None:
        self._token, self._context, self._sources = token, context, sources
        self._slots = threading.BoundedSemaphore(MAX_TUNNELS)

    def begin(
        self, viewer: ssl.SSLSocket, query: Mapping[str, str], done: Callable[[], None]
    ) -> int:
        """Pass a request on, and its bytes in a thread that calls ``done`` at its end.

        Returns
        -------
        int
            0: it has begun, and the answer was given. Else the status to answer with.
        """
        source = self._source(query.get("task", ""))
        if source is None:
            return 404
        if not self._slots.acquire(blocking=False):
            return 503
        agent = None
        try:
            agent, head, rest = self._ask(source, query.get("name", ""))
            status = _status(head)
            if status != 101:
                raise _RefusedError(status)
            viewer.sendall(head + b"\r\n\r\n")
            threading.Thread(
                target=self._carry, args=(viewer, agent, rest, done), daemon=True
            ).start()
        except _RefusedError as exc:
            self._end(agent)
            return exc.status
        except (OSError, RuntimeError):
            self._end(agent)
            return 503
        return 0

    def _source(self, task: str) -> Source | None:
        sources = self._sources()
        if task:
            return sources.get(task)
        return next(iter(sources.values())) if len(sources) == 1 else None

    def _ask(self, source: Source, name: str) -> tuple[ssl.SSLSocket, bytes, bytes]:
        plain = socket.create_connection((source.host, source.port), OPEN_SECONDS)
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

    def _carry(
        self, viewer: ssl.SSLSocket, agent: ssl.SSLSocket, rest: bytes, done: Callable[[], None]
    ) -> None:
        try:
            with suppress(OSError):
                keep_alive(viewer)
                keep_alive(agent)
                Carrier(viewer, agent, rest).run()
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


def _status(head: bytes) -> int:
    words = head.split(None, 2)
    status = int(words[1]) if len(words) > 1 and words[1].isdigit() else 502
    return status if status in (101, 404, 409, 426, 503) else 502
