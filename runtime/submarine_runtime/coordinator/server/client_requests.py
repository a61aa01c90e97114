"""Handle clients' requests: status, logs, streams, tunnels, cancel, save.

Each request has its own thread; the number of threads and all sizes are limited. The link server
has checked the token. Logs are fetched from the agents' ports on request.
"""

from __future__ import annotations

import json
import os
import socket
import ssl
import threading
import time
from collections import deque
from contextlib import suppress
from http.client import HTTPException, HTTPSConnection
from typing import Any, Callable, Mapping
from urllib.parse import parse_qs, urlencode, urlsplit

from submarine_runtime.coordinator.record import JobStatus
from submarine_runtime.coordinator.server.agent_stream import AgentEndpoint
from submarine_runtime.coordinator.server.http_messages import (
    Request,
    read_body,
    response_head,
    send_response,
)
from submarine_runtime.coordinator.server.job_stream import JobStream
from submarine_runtime.coordinator.server.tunnel_relay import TunnelRelay
from submarine_runtime.network import PortResponse, client_context, port_request
from submarine_runtime.protocol import LogCursor, wire
from submarine_runtime.protocol.layout import attempt_name
from submarine_runtime.translation import _

MAX_THREADS = 32
MAX_STREAMS = 16
SOCKET_SECONDS = 20.0
#: Agents that are notified when a client shows TensorBoard files. In larger gangs few tasks write
#: such files.
MAX_NOTIFIED = 64
#: Seconds for an agent's answer to a request for its log.
FETCH_SECONDS = 5.0
#: Seconds for the upload of the model.
SAVE_SECONDS = 300.0


class ClientRequests:
    """Handle requests in threads.

    Parameters
    ----------
    endpoints
        Returns task -> address of its agent, for tasks with a connected agent.
    post
        Posts a message to the event loop.
    renew
        Renews the lease of the job.
    """

    def __init__(
        self,
        status: JobStatus,
        secret: Mapping[str, str],
        endpoints: Callable[[], dict[str, AgentEndpoint]],
        post: Callable[[dict[str, Any]], None],
        renew: Callable[[], None],
    ) -> None:
        self._status, self._secret = status, secret
        self._renew = renew
        self._endpoints, self._post = endpoints, post
        self._context = client_context(secret["certificate"])
        self._tunnels = TunnelRelay(secret["token"], self._context, endpoints)
        self._threads = threading.BoundedSemaphore(MAX_THREADS)
        self._streams = threading.BoundedSemaphore(MAX_STREAMS)
        self.ended = threading.Event()

    def accept(self, request: Request) -> None:
        """Handle a request in a thread; close its connection if there are too many threads."""
        if not self._threads.acquire(blocking=False):
            request.channel.close()
            return
        try:
            threading.Thread(target=self._answer, args=(request,), daemon=True).start()
        except RuntimeError:  # No thread can be started.
            self._threads.release()
            request.channel.close()

    def finish(self, timeout: float) -> None:
        """Wait until open streams have ended after the job, at most ``timeout`` seconds."""
        self.ended.set()
        deadline = time.monotonic() + timeout
        for _unused in range(MAX_STREAMS):
            if not self._streams.acquire(timeout=max(0.0, deadline - time.monotonic())):
                return

    def _answer(self, request: Request) -> None:
        sock = request.channel.sock
        tunnelled = False
        try:
            sock.settimeout(SOCKET_SECONDS)
            tunnelled = self._route(request, sock)
            if not tunnelled:
                sock.shutdown(socket.SHUT_WR)
        except (OSError, HTTPException):
            pass  # The client has disconnected.
        finally:
            if not tunnelled:
                request.channel.close()
            self._threads.release()

    def _route(self, request: Request, sock: ssl.SSLSocket) -> bool:
        """Handle a request; return whether its connection is a tunnel now, which closes it."""
        parts = urlsplit(request.target)
        try:
            query = {k: v[-1] for k, v in parse_qs(parts.query, max_num_fields=16).items()}
            if request.method == "GET" and parts.path == wire.STATUS:
                send_response(sock, 200, json.dumps(self._status.to_json()).encode())
            elif request.method == "GET" and parts.path in (wire.LOG, wire.TIMES):
                self._log(sock, parts.path, query)
            elif request.method == "GET" and parts.path == wire.STREAM:
                self._stream(sock, query)
            elif request.method == "GET" and parts.path == wire.TUNNEL:
                refused = self._tunnels.open(sock, query, request.channel.close)
                if not refused:
                    return True
                send_response(sock, refused)
            elif request.method == "POST":
                self._handle_post(sock, parts.path, read_body(request, sock))
            else:
                send_response(sock, 404)
        except ValueError:
            send_response(sock, 400)
        return False

    def _handle_post(self, sock: socket.socket, path: str, body: Mapping[str, Any]) -> None:
        fields = {key: str(body.get(key) or "")[:500] for key in ("by", "why", "name")}
        if path == wire.CANCEL:
            self._post({"type": "cancel", "by": fields["by"], "why": fields["why"]})
            send_response(sock, 202)
        elif path == wire.RENEW:
            self._renew()
            send_response(sock, 202)
        elif path == wire.STAND_DOWN:
            self._post({"type": "superseded"})
            send_response(sock, 202)
        elif path == wire.SAVE:
            self._save(sock, fields["name"])
        elif path == wire.LOOK:
            send_response(sock, 202)
            self._notify_agents()
        else:
            send_response(sock, 404)

    def _save(self, sock: socket.socket, name: str) -> None:
        answer: deque[dict[str, Any]] = deque()
        identity = os.urandom(8).hex()
        self._post({"type": "save", "id": identity, "name": name, "answer": answer})
        deadline = time.monotonic() + SAVE_SECONDS
        while not answer and time.monotonic() < deadline and not self.ended.wait(0.05):
            pass
        result = answer[0] if answer else {"error": _("the model was not saved in time")}
        version = result.get("version")
        if isinstance(version, dict):
            send_response(sock, 200, json.dumps(version).encode())
        else:
            error = str(result.get("error") or _("the agent could not save"))
            send_response(sock, 409, json.dumps({"error": error[:500]}).encode())

    def _log(self, sock: socket.socket, path: str, query: Mapping[str, str]) -> None:
        """Return bytes of a task's log, or the times of its lines, from the agent."""
        endpoint = self._endpoints().get(query.get("task", ""))
        if endpoint is None:
            send_response(sock, 404)
            return
        attempt = query.get("attempt") or attempt_name(endpoint.epoch, endpoint.attempt)
        passed = {key: query[key] for key in ("task", "stream", "offset", "limit") if key in query}
        try:
            words = urlencode({**passed, "attempt": attempt})
            status, headers, data = self._request(endpoint, "GET", f"{path}?{words}")
        except (OSError, HTTPException):
            send_response(sock, 502)
            return
        response_headers = {
            name: str(headers.get(name) or 0) for name in (wire.OFFSET_HEADER, wire.LENGTH_HEADER)
        }
        if status == 200:
            send_response(sock, 200, data, "application/octet-stream", response_headers)
        else:
            send_response(sock, 404 if status == 404 else 502)

    def _notify_agents(self) -> None:
        """Notify the agents that a client shows TensorBoard files."""
        for endpoint in list(self._endpoints().values())[:MAX_NOTIFIED]:
            with suppress(OSError, HTTPException):
                self._request(endpoint, "POST", wire.LOOK)

    def _request(self, endpoint: AgentEndpoint, method: str, target: str) -> PortResponse:
        connection = HTTPSConnection(
            endpoint.host, endpoint.port, timeout=FETCH_SECONDS, context=self._context
        )
        return port_request(connection, self._secret["token"], method, target)

    def _stream(self, sock: socket.socket, query: Mapping[str, str]) -> None:
        events = max(0, int(query.get("events", 0)))
        tail = int(query["tail"]) if "tail" in query else None
        tasks, cursor = query.get("tasks", "*"), LogCursor.parse(query.get("at", ""))
        if not self._streams.acquire(blocking=False):
            send_response(sock, 503)
            return
        try:
            sock.sendall(response_head(200, "application/x-ndjson", {}))
            stream = JobStream(
                sock.sendall,
                self._status,
                self._endpoints,
                self._secret["token"],
                self._context,
                self.ended,
            )
            stream.run(events, tasks, cursor, tail)
        finally:
            self._streams.release()
