"""Answers on the agent's port: HTTPS with the job's certificate and token; see ``protocol.wire``.

Threads, connections and request sizes are bounded, and nobody without the token learns more than
401. Does not change anything but through ``on_cancel``.
"""

from __future__ import annotations

import hmac
import json
import os
import socket
import ssl
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from socketserver import TCPServer, ThreadingMixIn
from typing import Any, Callable, Mapping
from urllib.parse import parse_qs, urlsplit

from submarine_runtime.agent.status import Status
from submarine_runtime.agent.stream import Positions, Stream
from submarine_runtime.protocol import wire

MAX_CONNECTIONS = 32
MAX_STREAMS = 16
MAX_BODY = 4096
SOCKET_SECONDS = 20.0
#: Seconds within which a connection must have shown the token.
GREETING_SECONDS = 10.0


class LiveServer(ThreadingMixIn, TCPServer):
    """The live view of one task.

    Parameters
    ----------
    secret
        ``token``, ``certificate``, ``key``.
    logs
        Stream -> file.
    on_cancel
        Called with ``by`` and ``why``.
    """

    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True
    request_queue_size = 16

    def __init__(
        self,
        listen: str,
        secret: Mapping[str, str],
        status: Status,
        task: str,
        logs: Mapping[str, str],
        on_cancel: Callable[[dict[str, str]], None],
    ) -> None:
        super().__init__((listen, 0), _Handler)
        self.status = status
        self.task = task
        self.logs = logs
        self.on_cancel = on_cancel
        self.ended = threading.Event()
        self.streams = threading.BoundedSemaphore(MAX_STREAMS)
        self._token = secret["token"].encode()
        self._context = _tls(secret)
        self._slots = threading.BoundedSemaphore(MAX_CONNECTIONS)
        self._strangers: dict[socket.socket, float] = {}
        self._lock = threading.Lock()

    @property
    def port(self) -> int:
        """The port that was free."""
        return int(self.server_address[1])

    def start(self) -> None:
        """Answer in the background."""
        arguments = {"poll_interval": GREETING_SECONDS / 2}
        threading.Thread(
            target=self.serve_forever, kwargs=arguments, name="server", daemon=True
        ).start()

    def finish(self, timeout: float) -> None:
        """The job has ended: let those who follow read to the end, but not for ever."""
        self.ended.set()
        deadline = time.monotonic() + timeout
        for _ in range(MAX_STREAMS):
            if not self.streams.acquire(timeout=max(0.0, deadline - time.monotonic())):
                return

    def is_token(self, presented: str) -> bool:
        """Compare in constant time."""
        return hmac.compare_digest(presented.encode("utf-8", "replace"), self._token)

    def authorised(self, request: socket.socket) -> None:
        """Note that this connection has shown the token and may take its time."""
        with self._lock:
            self._strangers.pop(request, None)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Give the connection a thread, or close it when there are too many."""
        if not self._slots.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # no thread to be had
            self._slots.release()
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Shake hands and answer one request."""
        secure = None
        try:
            request.settimeout(SOCKET_SECONDS)
            secure = self._context.wrap_socket(
                request, server_side=True, do_handshake_on_connect=False
            )
            with self._lock:
                self._strangers[secure] = time.monotonic()
            secure.do_handshake()
            _Handler(secure, client_address, self)
            secure.shutdown(socket.SHUT_WR)
        except (OSError, ValueError):
            pass  # the other side's trouble
        finally:
            if secure is not None:
                self.authorised(secure)
            self.shutdown_request(secure or request)
            self._slots.release()

    def service_actions(self) -> None:
        """Close what has been connected for long without showing the token."""
        oldest = time.monotonic() - GREETING_SECONDS
        with self._lock:
            late = [request for request, since in self._strangers.items() if since < oldest]
        for request in late:
            with suppress(OSError):
                request.shutdown(socket.SHUT_RDWR)


def _tls(secret: Mapping[str, str]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # load_cert_chain wants a file's name; this one has no name on any disk.
    descriptor = os.memfd_create("certificate")
    try:
        os.write(descriptor, (secret["certificate"] + "\n" + secret["key"]).encode())
        context.load_cert_chain(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)
    return context


class _Handler(BaseHTTPRequestHandler):
    server: LiveServer
    timeout = SOCKET_SECONDS
    server_version = "submarine"
    sys_version = ""

    def parse_request(self) -> bool:
        """Let nobody past without the token, whatever is asked."""
        if not super().parse_request():
            return False
        scheme, _, token = self.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not self.server.is_token(token.strip()):
            self._answer(401)
            return False
        self.server.authorised(self.connection)
        return True

    def handle_expect_100(self) -> bool:
        """Say nothing before the token was seen."""
        return True

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Only the status: the standard page would repeat what was sent."""
        self.close_connection = True
        self._answer(int(code))

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: requests are not the job's business."""

    def do_GET(self) -> None:
        """Status, log or stream."""
        parts = urlsplit(self.path)
        try:
            query = {k: v[-1] for k, v in parse_qs(parts.query, max_num_fields=16).items()}
            if parts.path == wire.STATUS:
                self._answer(200, json.dumps(self.server.status.to_json()).encode())
            elif parts.path == wire.LOG:
                self._log(query)
            elif parts.path == wire.STREAM:
                self._stream(query)
            else:
                self._answer(404)
        except ValueError:
            self._answer(400)

    def do_POST(self) -> None:
        """Cancel."""
        if urlsplit(self.path).path != wire.CANCEL:
            self._answer(404)
            return
        length = self.headers.get("Content-Length", "")
        if not length.isdigit():
            self._answer(411)
            return
        if int(length) > MAX_BODY:
            self._answer(413)
            return
        try:
            body = json.loads(self.rfile.read(int(length)) or b"{}")
        except (ValueError, RecursionError):
            body = None
        if not isinstance(body, dict):
            self._answer(400)
            return
        self.server.on_cancel({key: str(body.get(key) or "")[:500] for key in ("by", "why")})
        self._answer(202)

    def _log(self, query: Mapping[str, str]) -> None:
        path = self.server.logs.get(query.get("stream", ""))
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

    def _stream(self, query: Mapping[str, str]) -> None:
        start = Positions(*(int(query.get(name, 0)) for name in ("events", "stdout", "stderr")))
        if not self.server.streams.acquire(blocking=False):
            self._answer(503)
            return
        try:
            self._head(200, "application/x-ndjson", {})
            server = self.server
            Stream(
                self.wfile.write, server.status, server.task, server.logs, server.ended, start
            ).run()
        finally:
            self.server.streams.release()

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
