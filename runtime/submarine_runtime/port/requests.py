"""Handle the requests of a job's port: status, logs, streams, tunnels and actions.

Each request has its own thread; the number of threads and all sizes are limited. ``PortServer`` has
checked the token. Subclasses for the agent and for the coordinator define where logs are read and
what an action does; ``protocol.wire`` lists the requests.
"""

from __future__ import annotations

import json
import socket
import ssl
import threading
import time
from abc import ABC, abstractmethod
from typing import Any, Callable, Mapping, NamedTuple
from urllib.parse import parse_qs, urlsplit

from submarine_runtime.port.http_messages import (
    MAX_BODY,
    RefusedError,
    Request,
    read_body,
    response,
    response_head,
)
from submarine_runtime.protocol import wire
from submarine_runtime.record import Status

MAX_THREADS = 32
MAX_STREAMS = 16
SOCKET_SECONDS = 20.0
#: Actions whose request must have a body.
_WITH_BODY = frozenset({wire.CANCEL, wire.SAVE, wire.TOKENS})
#: Characters of the fields of a body.
_MAX_FIELDS = {"by": 500, "why": 500, "name": 200, "tokens": MAX_BODY}
#: Carries out an action; returns the content of the response, None: the action is accepted.
Action = Callable[[Mapping[str, str]], "dict[str, Any] | None"]
#: Sends bytes to the client; blocks, and raises OSError after it has disconnected.
Write = Callable[[bytes], Any]


class LogPiece(NamedTuple):
    """Bytes of a log, the offset of the first one, and the length of the log so far."""

    data: bytes
    offset: int
    length: int


class PortRequests(ABC):
    """Handle requests in threads.

    Parameters
    ----------
    actions
        Path of a ``POST`` request -> its action; other paths are unknown.

    Attributes
    ----------
    ended
        Set after the final record has been published.
    """

    def __init__(self, status: Status, actions: Mapping[str, Action]) -> None:
        self._status, self._actions = status, dict(actions)
        self._threads = threading.BoundedSemaphore(MAX_THREADS)
        self._streams = threading.BoundedSemaphore(MAX_STREAMS)
        self.ended = threading.Event()

    @abstractmethod
    def log(self, query: Mapping[str, str]) -> LogPiece:
        """Return bytes of a log.

        Raises
        ------
        RefusedError
            If the log is unknown, or cannot be read now.
        ValueError
            If the query is invalid.
        """

    @abstractmethod
    def times(self, query: Mapping[str, str]) -> bytes:
        """Return the times of a log's lines; raises as ``log`` does."""

    @abstractmethod
    def stream(self, query: Mapping[str, str]) -> Callable[[Write], None]:
        """Return the function that sends the live stream until the job has ended.

        Raises
        ------
        ValueError
            If the query is invalid.
        """

    @abstractmethod
    def open_tunnel(
        self, request: Request, sock: ssl.SSLSocket, query: Mapping[str, str]
    ) -> Callable[[], None]:
        """Open a tunnel and send the response.

        Returns
        -------
        Callable
            Forwards the bytes until one side has ended; called in a thread of its own.

        Raises
        ------
        RefusedError
            If there is no such tunnel, or it cannot be opened.
        """

    def stacks(self, query: Mapping[str, str]) -> dict[str, Any]:
        """Return the stacks of the program's processes; raises as ``log`` does."""
        raise RefusedError(404)

    def accept(self, request: Request) -> None:
        """Handle a request in a thread; refuse it if there are too many threads."""
        if not self._threads.acquire(blocking=False):
            _refuse(request)
            return
        try:
            threading.Thread(target=self._answer, args=(request,), daemon=True).start()
        except RuntimeError:  # No thread can be started.
            self._threads.release()
            _refuse(request)

    def finish(self, timeout: float) -> None:
        """Wait until open streams have ended after the job, at most ``timeout`` seconds."""
        self.ended.set()
        deadline = time.monotonic() + timeout
        for _ in range(MAX_STREAMS):
            if not self._streams.acquire(timeout=max(0.0, deadline - time.monotonic())):
                return

    def _answer(self, request: Request) -> None:
        sock = request.channel.sock
        tunnel = None
        try:
            sock.settimeout(SOCKET_SECONDS)
            try:
                tunnel = self._route(request, sock)
            except RefusedError as exc:
                sock.sendall(response(exc.code, exc.body, headers=exc.headers))
            except ValueError:
                sock.sendall(response(400))
            if tunnel is None:
                sock.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # The client has disconnected.
        finally:
            self._threads.release()  # The number of tunnels has its own limit.
            if tunnel is not None:
                tunnel()
            request.channel.close()

    def _route(self, request: Request, sock: ssl.SSLSocket) -> Callable[[], None] | None:
        """Handle a request; return the function that forwards the bytes of an open tunnel."""
        if request.method not in ("GET", "POST"):
            raise RefusedError(501)
        parts = urlsplit(request.target)
        query = {k: v[-1] for k, v in parse_qs(parts.query, max_num_fields=16).items()}
        if request.method == "POST":
            sock.sendall(self._act(request, sock, parts.path))
        elif parts.path == wire.STATUS:
            sock.sendall(response(200, json.dumps(self._status.to_json()).encode()))
        elif parts.path == wire.LOG:
            piece = self.log(query)
            offsets = {wire.OFFSET_HEADER: str(piece.offset), wire.LENGTH_HEADER: str(piece.length)}
            sock.sendall(response(200, piece.data, "application/octet-stream", offsets))
        elif parts.path == wire.TIMES:
            sock.sendall(response(200, self.times(query), "text/plain"))
        elif parts.path == wire.STACKS:
            sock.sendall(response(200, json.dumps(self.stacks(query)).encode()))
        elif parts.path == wire.STREAM:
            self._send_stream(sock, self.stream(query))
        elif parts.path == wire.TUNNEL:
            return self.open_tunnel(request, sock, query)
        else:
            raise RefusedError(404)
        return None

    def _act(self, request: Request, sock: ssl.SSLSocket, path: str) -> bytes:
        """Carry out an action; return the response."""
        action = self._actions.get(path)
        if action is None:
            raise RefusedError(404)
        body: Mapping[str, Any] = {}
        if path in _WITH_BODY or request.headers.get("content-length"):
            body = read_body(request, sock)
        content = action({key: str(body.get(key) or "")[:end] for key, end in _MAX_FIELDS.items()})
        return response(202) if content is None else response(200, json.dumps(content).encode())

    def _send_stream(self, sock: ssl.SSLSocket, send: Callable[[Write], None]) -> None:
        if not self._streams.acquire(blocking=False):
            raise RefusedError(503)
        try:
            sock.sendall(response_head(200, {"Content-Type": "application/x-ndjson"}))
            send(sock.sendall)
        finally:
            self._streams.release()


def _refuse(request: Request) -> None:
    """Refuse a request without a thread."""
    try:
        request.channel.send(response(503))
    except (OSError, BufferError):
        pass  # The client has disconnected.
    request.channel.close()
