"""Viewers' requests: status, logs, the stream, cancel, save; each in a thread, of which few.

The token was checked by the link server. Logs are fetched from the agents' own ports, and only
while somebody asks for them. Sizes are bounded.
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
from submarine_runtime.coordinator.server.agent_stream import Source
from submarine_runtime.coordinator.server.http_messages import Request
from submarine_runtime.coordinator.server.http_replies import body_of, head_of, reply
from submarine_runtime.coordinator.server.job_stream import Follow, positions_of
from submarine_runtime.coordinator.server.tls_channel import client_context
from submarine_runtime.coordinator.server.tunnel_relay import Tunnelling
from submarine_runtime.protocol import wire
from submarine_runtime.protocol.layout import attempt_name

MAX_THREADS = 32
MAX_STREAMS = 16
SOCKET_SECONDS = 20.0
#: Agents that are told that somebody looks; in larger gangs few tasks write for TensorBoard.
MAX_TOLD = 64
#: Seconds that an agent has to answer a request for its log.
FETCH_SECONDS = 5.0
#: Seconds that uploading the model may take before the viewer is told to look later.
SAVE_SECONDS = 300.0


class Viewers:
    """Answers requests.

    Parameters
    ----------
    sources
        Task -> where its agent listens and what it runs, of those that have an agent now.
    tell
        Passes a message on to the coordinator's thread.
    renew
        Who started the job is still there.
    """

    def __init__(
        self,
        status: JobStatus,
        secret: Mapping[str, str],
        sources: Callable[[], dict[str, Source]],
        tell: Callable[[dict[str, Any]], None],
        renew: Callable[[], None],
    ) -> None:
        self._status, self._secret = status, secret
        self._renew = renew
        self._sources, self._tell = sources, tell
        self._context = client_context(secret)
        self._tunnels = Tunnelling(secret["token"], self._context, sources)
        self._threads = threading.BoundedSemaphore(MAX_THREADS)
        self._streams = threading.BoundedSemaphore(MAX_STREAMS)
        self.ended = threading.Event()

    def take(self, request: Request) -> None:
        """Answer in a thread, or close the connection where there are too many."""
        if not self._threads.acquire(blocking=False):
            request.channel.close()
            return
        try:
            threading.Thread(target=self._answer, args=(request,), daemon=True).start()
        except RuntimeError:  # no thread to be had
            self._threads.release()
            request.channel.close()

    def finish(self, timeout: float) -> None:
        """The job has ended: let those who follow read to the end, but not for ever."""
        self.ended.set()
        deadline = time.monotonic() + timeout
        for _ in range(MAX_STREAMS):
            if not self._streams.acquire(timeout=max(0.0, deadline - time.monotonic())):
                return

    def _answer(self, request: Request) -> None:
        sock = request.channel.sock
        carried = False
        try:
            sock.settimeout(SOCKET_SECONDS)
            carried = self._route(request, sock)
            if not carried:
                sock.shutdown(socket.SHUT_WR)
        except (OSError, HTTPException):
            pass  # the viewer has gone
        finally:
            if not carried:
                request.channel.close()
            self._threads.release()

    def _route(self, request: Request, sock: ssl.SSLSocket) -> bool:
        """Answer; whether the connection has become a tunnel, which closes it itself."""
        parts = urlsplit(request.target)
        try:
            query = {k: v[-1] for k, v in parse_qs(parts.query, max_num_fields=16).items()}
            if request.method == "GET" and parts.path == wire.STATUS:
                reply(sock, 200, json.dumps(self._status.to_json()).encode())
            elif request.method == "GET" and parts.path in (wire.LOG, wire.TIMES):
                self._log(sock, parts.path, query)
            elif request.method == "GET" and parts.path == wire.STREAM:
                self._stream(sock, query)
            elif request.method == "GET" and parts.path == wire.TUNNEL:
                refused = self._tunnels.begin(sock, query, request.channel.close)
                if not refused:
                    return True
                reply(sock, refused)
            elif request.method == "POST":
                self._post(sock, parts.path, body_of(request, sock))
            else:
                reply(sock, 404)
        except ValueError:
            reply(sock, 400)
        return False

    def _post(self, sock: socket.socket, path: str, body: Mapping[str, Any]) -> None:
        words = {key: str(body.get(key) or "")[:500] for key in ("by", "why", "name")}
        if path == wire.CANCEL:
            self._tell({"type": "cancel", "by": words["by"], "why": words["why"]})
            reply(sock, 202)
        elif path == wire.RENEW:
            self._renew()
            reply(sock, 202)
        elif path == wire.STAND_DOWN:
            self._tell({"type": "superseded"})
            reply(sock, 202)
        elif path == wire.SAVE:
            self._save(sock, words["name"])
        elif path == wire.LOOK:
            reply(sock, 202)
            self._pass_look_on()
        else:
            reply(sock, 404)

    def _save(self, sock: socket.socket, name: str) -> None:
        answer: deque[dict[str, Any]] = deque()
        identity = os.urandom(8).hex()
        self._tell({"type": "save", "id": identity, "name": name, "answer": answer})
        deadline = time.monotonic() + SAVE_SECONDS
        while not answer and time.monotonic() < deadline and not self.ended.wait(0.05):
            pass
        said = answer[0] if answer else {"error": "the model was not saved in time"}
        version = said.get("version")
        if isinstance(version, dict):
            reply(sock, 200, json.dumps(version).encode())
        else:
            error = str(said.get("error") or "the agent could not save")
            reply(sock, 409, json.dumps({"error": error[:500]}).encode())

    def _log(self, sock: socket.socket, path: str, query: Mapping[str, str]) -> None:
        """Bytes of a task's log, or when they were written, as its agent tells."""
        source = self._sources().get(query.get("task", ""))
        if source is None:
            reply(sock, 404)
            return
        wanted = query.get("attempt") or attempt_name(source.epoch, source.attempt)
        passed = {key: query[key] for key in ("task", "stream", "offset", "limit") if key in query}
        try:
            status, headers, data = self._fetch(source, path, {**passed, "attempt": wanted})
        except (OSError, HTTPException):
            reply(sock, 502)
            return
        kept = {
            name: str(headers.get(name) or 0) for name in (wire.OFFSET_HEADER, wire.LENGTH_HEADER)
        }
        if status == 200:
            reply(sock, 200, data, "application/octet-stream", kept)
        else:
            reply(sock, 404 if status == 404 else 502)

    def _pass_look_on(self) -> None:
        """Tell the agents, one after the other, that somebody looks."""
        for source in list(self._sources().values())[:MAX_TOLD]:
            with suppress(OSError, HTTPException):
                self._ask(source, "POST", wire.LOOK)

    def _fetch(self, source: Source, path: str, query: Mapping[str, str]) -> tuple[int, Any, bytes]:
        return self._ask(source, "GET", f"{path}?{urlencode(query)}")

    def _ask(self, source: Source, method: str, target: str) -> tuple[int, Any, bytes]:
        connection = HTTPSConnection(
            source.host, source.port, timeout=FETCH_SECONDS, context=self._context
        )
        try:
            headers = {"Authorization": "Bearer " + self._secret["token"]}
            connection.request(method, target, headers=headers)
            with connection.getresponse() as answer:
                return answer.status, answer.headers, answer.read(wire.MAX_LOG_BYTES + 1)
        finally:
            connection.close()

    def _stream(self, sock: socket.socket, query: Mapping[str, str]) -> None:
        events = max(0, int(query.get("events", 0)))
        tail = int(query["tail"]) if "tail" in query else None
        wanted, at = query.get("tasks", "*"), positions_of(query.get("at", ""))
        if not self._streams.acquire(blocking=False):
            reply(sock, 503)
            return
        try:
            sock.sendall(head_of(200, "application/x-ndjson", {}))
            follow = Follow(
                sock.sendall,
                self._status,
                self._sources,
                self._secret["token"],
                self._context,
                self.ended,
            )
            follow.run(events, wanted, at, tail)
        finally:
            self._streams.release()
