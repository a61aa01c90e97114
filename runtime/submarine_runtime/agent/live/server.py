"""The agent's port: TLS with the job's certificate, and the answers to requests.

Threads, connections and sizes are limited. A client without the token receives only 401.
``protocol.wire`` lists the requests.
"""

from __future__ import annotations

import hmac
import json
import os
import socket
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from socketserver import TCPServer, ThreadingMixIn
from typing import Any, Callable, Mapping
from urllib.parse import parse_qs, urlsplit

from submarine_runtime.agent.live.stream import FollowerStream
from submarine_runtime.agent.shipping import LogFiles
from submarine_runtime.network import ConnectionLimit, Tunnels, server_context
from submarine_runtime.protocol import wire
from submarine_runtime.protocol.layout import STREAMS
from submarine_runtime.protocol.tunnels import PROTOCOL
from submarine_runtime.record import Status

#: Maximum number of concurrent requests with the token; tunnels have their own limit.
MAX_REQUESTS = 32
MAX_STREAMS = 16
#: Maximum number of connections without the token: from one address, and in total. A new one
#: replaces the oldest. More than a client opens at once: some twenty tunnels when a page is
#: reloaded.
MAX_UNAUTHENTICATED, MAX_UNAUTHENTICATED_OVERALL = 32, 128
#: Seconds within which a connection must present the token.
GREETING_SECONDS = 10.0
MAX_BODY = 4096
SOCKET_SECONDS = 20.0


class LiveServer(ThreadingMixIn, TCPServer):
    """The live view of one task.

    Parameters
    ----------
    secret
        ``token``, ``certificate``, ``key``.
    listen
        Address on which any free port is bound, or a socket that listens already.
    on_cancel
        Called with ``by`` and ``why``; None: cancel is not supported here.
    on_save
        Saves the model directory under a name as a version and returns it; None: not supported
        here.
    tunnels
        Tunnels to the targets that the program has declared; None: not supported here.
    on_renew
        Called when the client that started the job renews its lease.
    """

    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True
    # More than a burst of connections: otherwise a connection waits a second for its next SYN.
    request_queue_size = 128

    def __init__(
        self,
        listen: str | socket.socket,
        secret: Mapping[str, str],
        status: Status,
        task: str,
        logs: LogFiles,
        on_cancel: Callable[[dict[str, str]], None] | None = None,
        on_save: Callable[[str], dict[str, Any]] | None = None,
        tunnels: Tunnels | None = None,
        on_renew: Callable[[], None] = lambda: None,
    ) -> None:
        if isinstance(listen, str):
            super().__init__((listen, 0), RequestHandler)
        else:
            super().__init__(listen.getsockname(), RequestHandler, bind_and_activate=False)
            self.socket.close()
            self.socket = listen
        self.status = status
        self.task = task
        self.logs = logs
        self.on_cancel = on_cancel
        self.on_save = on_save
        self.tunnels = tunnels
        self.on_renew = on_renew
        self.ended = threading.Event()
        self.streams = threading.BoundedSemaphore(MAX_STREAMS)
        self._token = secret["token"].encode()
        self._context = server_context(secret)
        self._unauthenticated: ConnectionLimit[socket.socket] = ConnectionLimit(
            MAX_UNAUTHENTICATED, MAX_UNAUTHENTICATED_OVERALL
        )
        self._authenticated: set[socket.socket] = set()
        self._lock = threading.Lock()

    @property
    def port(self) -> int:
        """The bound port."""
        return int(self.socket.getsockname()[1])

    def start(self) -> None:
        """Answer in the background."""
        arguments = {"poll_interval": GREETING_SECONDS / 2}
        threading.Thread(
            target=self.serve_forever, kwargs=arguments, name="server", daemon=True
        ).start()

    def finish(self, timeout: float) -> None:
        """Wait until followers have read to the end of the job, at most ``timeout`` seconds."""
        self.ended.set()
        deadline = time.monotonic() + timeout
        for _ in range(MAX_STREAMS):
            if not self.streams.acquire(timeout=max(0.0, deadline - time.monotonic())):
                return

    def is_token(self, presented: str) -> bool:
        """Compare in constant time."""
        return hmac.compare_digest(presented.encode("utf-8", "replace"), self._token)

    def authorised(self, request: socket.socket) -> bool:
        """Record that a connection has presented the token.

        Returns
        -------
        bool
            False if there are too many concurrent requests.
        """
        with self._lock:
            self._unauthenticated.remove(request)
            if len(self._authenticated) >= MAX_REQUESTS:
                return False
            self._authenticated.add(request)
            return True

    def process_request(self, request: Any, client_address: Any) -> None:
        """Start a thread for the connection; it may replace the oldest one without a token."""
        try:
            request.settimeout(SOCKET_SECONDS)
            secure = self._context.wrap_socket(
                request, server_side=True, do_handshake_on_connect=False
            )
        except (OSError, ValueError):  # The client has closed it already.
            self.shutdown_request(request)
            return
        with self._lock:
            replaced = self._unauthenticated.add(secure, client_address[0], time.monotonic())
        for one in replaced:
            _shut_down(one)
        try:
            super().process_request(secure, client_address)
        except RuntimeError:  # No thread can be started.
            self._forget(secure)
            self.shutdown_request(secure)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Perform the handshake, answer one request, and forward a tunnel if requested."""
        handler = None
        try:
            request.do_handshake()
            handler = RequestHandler(request, client_address, self)
            if handler.tunnel is None:
                request.shutdown(socket.SHUT_WR)
        except (OSError, ValueError):
            pass  # An error of the client's connection.
        finally:
            self._forget(request)
            if handler and handler.tunnel and self.tunnels:
                self.tunnels.forward(request, handler.tunnel)
            self.shutdown_request(request)

    def service_actions(self) -> None:
        """Close connections that have not presented the token in time."""
        with self._lock:
            late = self._unauthenticated.older_than(time.monotonic() - GREETING_SECONDS)
        for request in late:
            _shut_down(request)

    def _forget(self, request: socket.socket) -> None:
        with self._lock:
            self._unauthenticated.remove(request)
            self._authenticated.discard(request)


def _shut_down(request: socket.socket) -> None:
    """End a connection that a thread reads from; that thread closes it.

    The shutdown of ssl.SSLSocket is not used: the thread would continue without TLS.
    """
    with suppress(OSError):
        socket.socket.shutdown(request, socket.SHUT_RDWR)


class RequestHandler(BaseHTTPRequestHandler):
    """One request on one connection."""

    server: LiveServer
    timeout = SOCKET_SECONDS
    server_version = "submarine"
    sys_version = ""
    #: The program's end of a granted tunnel; the creator of the handler forwards the bytes.
    tunnel: socket.socket | None = None

    def parse_request(self) -> bool:
        """Reject every request without the token."""
        if not super().parse_request():
            return False
        scheme, _, token = self.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not self.server.is_token(token.strip()):
            self._answer(401)
            return False
        if not self.server.authorised(self.connection):
            self._answer(503)
            return False
        return True

    def handle_expect_100(self) -> bool:
        """Send nothing before the token has been checked."""
        return True

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Send only the status: the standard page would repeat the request."""
        self.close_connection = True
        self._answer(int(code))

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: requests are not part of the job's log."""

    def do_GET(self) -> None:
        """Answer requests for status, log, stream and tunnel."""
        parts = urlsplit(self.path)
        try:
            query = {k: v[-1] for k, v in parse_qs(parts.query, max_num_fields=16).items()}
            if parts.path == wire.STATUS:
                self._answer(200, json.dumps(self.server.status.to_json()).encode())
            elif parts.path == wire.LOG:
                self._log(query)
            elif parts.path == wire.TIMES:
                self._times(query)
            elif parts.path == wire.STREAM:
                self._stream(query)
            elif parts.path == wire.TUNNEL and self.server.tunnels is not None:
                self._tunnel(self.server.tunnels, query.get("name", ""))
            else:
                self._answer(404)
        except ValueError:
            self._answer(400)

    def do_POST(self) -> None:
        """Cancel, save, renew the lease, or note a client that displays TensorBoard files."""
        server, path = self.server, urlsplit(self.path).path
        heard = {wire.LOOK: server.status.tensorboard_clients.request, wire.RENEW: server.on_renew}
        if path in heard:
            heard[path]()
            self._answer(202)
            return
        known = {wire.CANCEL: server.on_cancel, wire.SAVE: server.on_save}
        if known.get(path) is None:
            self._answer(404)
            return
        body = self._body()
        if body is None:
            return
        if path == wire.SAVE:
            self._save(str(body.get("name") or "")[:200])
        elif server.on_cancel is not None:
            server.on_cancel({key: str(body.get(key) or "")[:500] for key in ("by", "why")})
            self._answer(202)

    def _body(self) -> dict[str, Any] | None:
        """Return the JSON object in the body; None after an error response."""
        length = self.headers.get("Content-Length", "")
        if not length.isdigit():
            self._answer(411)
            return None
        if int(length) > MAX_BODY:
            self._answer(413)
            return None
        try:
            body = json.loads(self.rfile.read(int(length)) or b"{}")
        except (ValueError, RecursionError):
            body = None
        if not isinstance(body, dict):
            self._answer(400)
            return None
        return body

    def _save(self, name: str) -> None:
        save = self.server.on_save
        assert save is not None
        try:
            self._answer(200, json.dumps(save(name)).encode())
        except (ValueError, OSError) as exc:
            self._answer(409, json.dumps({"error": str(exc)[:1000]}).encode())

    def _log(self, query: Mapping[str, str]) -> None:
        paths = self.server.logs.paths(query.get("attempt", ""))
        path = paths.get(query.get("stream", "")) if paths is not None else None
        if path is None or query.get("task", self.server.task) != self.server.task:
            self._answer(404)
            return
        offset = int(query.get("offset", 0))
        limit = min(wire.MAX_LOG_BYTES, max(0, int(query.get("limit", wire.MAX_LOG_BYTES))))
        data, length = b"", 0
        try:
            with open(path, "rb") as file:
                length = os.fstat(file.fileno()).st_size
                offset = max(0, length + offset) if offset < 0 else min(offset, length)
                file.seek(offset)
                data = file.read(min(limit, length - offset))
        except FileNotFoundError:
            offset = 0  # the program has not been started yet
        headers = {wire.OFFSET_HEADER: str(offset), wire.LENGTH_HEADER: str(length)}
        self._answer(200, data, "application/octet-stream", headers)

    def _times(self, query: Mapping[str, str]) -> None:
        index = self.server.logs.index(query.get("attempt", ""), query.get("stream", ""))
        if index is None or query.get("task", self.server.task) != self.server.task:
            self._answer(404)
        else:
            self._answer(200, index, "text/plain")

    def _stream(self, query: Mapping[str, str]) -> None:
        events = int(query.get("events", 0))
        start = {stream: int(query.get(stream, 0)) for stream in STREAMS}
        if not self.server.streams.acquire(blocking=False):
            self._answer(503)
            return
        try:
            self._head(200, "application/x-ndjson", {})
            server = self.server
            FollowerStream(
                self.wfile.write,
                server.status,
                server.task,
                server.logs,
                server.ended,
                events,
                start,
            ).run()
        finally:
            self.server.streams.release()

    def _tunnel(self, tunnels: Tunnels, name: str) -> None:
        if self.headers.get("Upgrade", "").lower() != PROTOCOL:
            self._answer(426, headers={"Upgrade": PROTOCOL})
            return
        try:
            local = tunnels.open(name)
        except ValueError as exc:
            self._answer(409, json.dumps({"error": str(exc)[:1000]}).encode())
            return
        except OSError as exc:
            self._answer(503, json.dumps({"error": f"{name}: {exc}"[:1000]}).encode())
            return
        if local is None:
            self._answer(404)
            return
        try:
            self.send_response(101)
            self.send_header("Connection", "Upgrade")
            self.send_header("Upgrade", PROTOCOL)
            self.end_headers()
        except OSError:
            tunnels.close(local)
            raise
        self.tunnel = local

    def _answer(
        self,
        code: int,
        body: bytes = b"",
        kind: str = "application/json",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._head(code, kind, {**(headers or {}), "Content-Length": str(len(body))})
        if self.command != "HEAD":
            self.wfile.write(body)

    def _head(self, code: int, kind: str, headers: Mapping[str, str]) -> None:
        self.send_response(code)
        for name, value in {**headers, "Content-Type": kind, "Connection": "close"}.items():
            self.send_header(name, value)
        self.end_headers()
