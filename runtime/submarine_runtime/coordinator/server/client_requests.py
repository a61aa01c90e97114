"""The requests of the coordinator's port: logs, streams and tunnels come from the agents' ports."""

from __future__ import annotations

import os
import ssl
import threading
import time
from collections import deque
from contextlib import suppress
from http.client import HTTPException, HTTPMessage, HTTPSConnection
from typing import TYPE_CHECKING, Any, Callable, Mapping
from urllib.parse import urlencode

from submarine_runtime import stacks
from submarine_runtime.coordinator.record import JobStatus
from submarine_runtime.coordinator.server.agent_stream import AgentEndpoint
from submarine_runtime.coordinator.server.job_stream import JobStream
from submarine_runtime.coordinator.server.tunnel_relay import TunnelRelay
from submarine_runtime.network import PortResponse, client_context, port_request
from submarine_runtime.port import LogPiece, PortRequests, RefusedError, Request, Write
from submarine_runtime.protocol import LogCursor, wire
from submarine_runtime.protocol.layout import attempt_name
from submarine_runtime.translation import _

if TYPE_CHECKING:
    from submarine_runtime.coordinator.server.stack_collector import StackCollector

#: Agents that are notified when a client shows TensorBoard files. In larger gangs few tasks write
#: such files.
MAX_NOTIFIED = 64
#: Seconds for an agent's answer to a request for its log.
FETCH_SECONDS = 5.0
#: Seconds for the upload of the model.
SAVE_SECONDS = 300.0


class ClientRequests(PortRequests):
    """Handle requests of clients.

    Parameters
    ----------
    endpoints
        Returns task -> address of its agent, for tasks with a connected agent.
    post
        Posts a message to the event loop.
    renew
        Renews the lease of the job.
    receive_tokens
        Receives fresh delegation tokens.
    stack_collector
        Returns what takes the stacks of tasks.
    """

    def __init__(
        self,
        status: JobStatus,
        secret: Mapping[str, str],
        endpoints: Callable[[], dict[str, AgentEndpoint]],
        post: Callable[[dict[str, Any]], None],
        renew: Callable[[], None],
        receive_tokens: Callable[[str], None],
        stack_collector: Callable[[], StackCollector],
    ) -> None:
        super().__init__(
            status,
            {
                wire.CANCEL: lambda fields: post(
                    {"type": "cancel", "by": fields["by"], "why": fields["why"]}
                ),
                wire.RENEW: lambda fields: renew(),
                wire.TOKENS: lambda fields: receive_tokens(fields["tokens"]),
                wire.STAND_DOWN: lambda fields: post({"type": "superseded"}),
                wire.SAVE: lambda fields: self._save(fields["name"]),
                wire.LOOK: lambda fields: self._notify_agents(),
            },
        )
        self._job_status = status
        self._secret, self._endpoints, self._post = secret, endpoints, post
        self._context = client_context(secret["certificate"])
        self._tunnels = TunnelRelay(secret["token"], self._context, endpoints)
        self._notifying = threading.Lock()
        self._stack_collector = stack_collector

    def log(self, query: Mapping[str, str]) -> LogPiece:
        """See ``PortRequests.log``."""
        headers, data = self._fetch(wire.LOG, query)
        offset, length = (
            int(headers.get(name) or 0) for name in (wire.OFFSET_HEADER, wire.LENGTH_HEADER)
        )
        return LogPiece(data, offset, length)

    def times(self, query: Mapping[str, str]) -> bytes:
        """See ``PortRequests.times``."""
        return self._fetch(wire.TIMES, query)[1]

    def stacks(self, query: Mapping[str, str]) -> dict[str, Any]:
        """See ``PortRequests.stacks``."""
        task = query.get("task")
        if task is not None and task not in self._endpoints():
            raise RefusedError(404)
        entries = self._stack_collector().collect(None if task is None else [task])
        if not entries:
            raise RefusedError(409, _("No task of the job is running."))
        return stacks.report(entries).to_json()

    def stream(self, query: Mapping[str, str]) -> Callable[[Write], None]:
        """See ``PortRequests.stream``."""
        events = max(0, int(query.get("events", 0)))
        tail = int(query["tail"]) if "tail" in query else None
        tasks, cursor = query.get("tasks", "*"), LogCursor.parse(query.get("at", ""))

        status = self._job_status

        def send(write: Write) -> None:
            token = self._secret["token"]
            stream = JobStream(write, status, self._endpoints, token, self._context, self.ended)
            stream.run(events, tasks, cursor, tail)

        return send

    def open_tunnel(
        self, request: Request, sock: ssl.SSLSocket, query: Mapping[str, str]
    ) -> Callable[[], None]:
        """See ``PortRequests.open_tunnel``."""
        return self._tunnels.open(sock, query)

    def _save(self, name: str) -> dict[str, Any]:
        answer: deque[dict[str, Any]] = deque()
        identity = os.urandom(8).hex()
        self._post({"type": "save", "id": identity, "name": name, "answer": answer})
        deadline = time.monotonic() + SAVE_SECONDS
        while not answer and time.monotonic() < deadline and not self.ended.wait(0.05):
            pass
        result = answer[0] if answer else {"error": _("the model was not saved in time")}
        version = result.get("version")
        if isinstance(version, dict):
            return version
        raise RefusedError(409, str(result.get("error") or _("the agent could not save"))[:500])

    def _fetch(self, path: str, query: Mapping[str, str]) -> tuple[HTTPMessage, bytes]:
        """Return headers and body of an agent's answer to a request for its log."""
        endpoint = self._endpoints().get(query.get("task", ""))
        if endpoint is None:
            raise RefusedError(404)
        passed = {key: query[key] for key in ("task", "stream", "offset", "limit") if key in query}
        passed["attempt"] = query.get("attempt") or attempt_name(endpoint.epoch, endpoint.attempt)
        try:
            status, headers, data = self._request(endpoint, "GET", f"{path}?{urlencode(passed)}")
        except (OSError, HTTPException) as exc:
            raise RefusedError(502) from exc
        if status != 200:
            raise RefusedError(404 if status == 404 else 502)
        return headers, data

    def _notify_agents(self) -> None:
        """Notify the agents, in a thread, that a client shows TensorBoard files."""

        def notify() -> None:
            try:
                for endpoint in list(self._endpoints().values())[:MAX_NOTIFIED]:
                    with suppress(OSError, HTTPException):
                        self._request(endpoint, "POST", wire.LOOK)
            finally:
                self._notifying.release()

        # Clients repeat their request; one notification at a time is sufficient.
        if self._notifying.acquire(blocking=False):
            threading.Thread(target=notify, daemon=True).start()

    def _request(self, endpoint: AgentEndpoint, method: str, target: str) -> PortResponse:
        connection = HTTPSConnection(
            endpoint.host, endpoint.port, timeout=FETCH_SECONDS, context=self._context
        )
        return port_request(connection, self._secret["token"], method, target)
