"""Request handler of the agent's port; see ``protocol.wire``.

Sizes are limited. A client without the token receives only 401. ``server`` handles connections,
threads and TLS.
"""

from __future__ import annotations

import json
import os
import socket
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any, Mapping
from urllib.parse import parse_qs, urlsplit

from submarine_runtime.agent.live.stream import Positions, Stream
from submarine_runtime.protocol import wire
from submarine_runtime.protocol.tunnels import PROTOCOL

if TYPE_CHECKING:
    from submarine_runtime.agent.live.server import LiveServer
    from submarine_runtime.network import Tunnels

MAX_BODY = 4096
SOCKET_SECONDS = 20.0


class Handler(BaseHTTPRequestHandler):
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
        heard = {wire.LOOK: server.status.onlookers.note, wire.RENEW: server.on_renew}
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
