"""Stream the record, the events and the logs of a distributed job to one client.

The stream opens one connection to each requested agent and forwards its lines. While the client
reads slowly nothing is read from the agents, which then skip, so memory is bounded by one buffer
for each task. The stream runs in the thread of the client's request.
"""

from __future__ import annotations

import json
import selectors
import ssl
import threading
import time
from typing import Any, Callable, Mapping
from urllib.parse import urlencode

from submarine_runtime.coordinator.record import JobStatus
from submarine_runtime.coordinator.server.agent_stream import (
    AgentEndpoint,
    AgentStream,
    AgentStreamError,
)
from submarine_runtime.protocol import LogCursor, LogKey, read_link_line, read_log_line, wire
from submarine_runtime.protocol.layout import STREAMS, attempt_name

POLL = 0.1
STATUS_INTERVAL = 0.5
#: Maximal number of tasks in one stream; clients read shipped logs of the others.
MAX_STREAMS = 256
RETRY_SECONDS = 2.0
#: Seconds for the agents' last lines after the end of the job.
LAST_LINES_SECONDS = 1.0


class JobStream:
    """Stream to one client.

    Parameters
    ----------
    write
        Sends bytes; blocks, and raises OSError when the client has disconnected.
    ended
        Set when the final record is published.
    """

    def __init__(
        self,
        write: Callable[[bytes], Any],
        status: JobStatus,
        endpoints: Callable[[], dict[str, AgentEndpoint]],
        token: str,
        context: ssl.SSLContext,
        ended: threading.Event,
    ) -> None:
        self._write, self._status, self._endpoints = write, status, endpoints
        self._token, self._context, self._ended = token, context, ended
        self._selector = selectors.DefaultSelector()
        self._streams: dict[str, AgentStream] = {}
        self._retry: dict[str, float] = {}
        self._version, self._next_status, self._next_open = -1, 0.0, 0.0
        self._last_sent = time.monotonic()

    def run(self, events: int, tasks: str, cursor: LogCursor, tail: int | None) -> None:
        """Send until the end of the job.

        Parameters
        ----------
        tasks
            Comma-separated names, or ``*`` for all.
        cursor
            Position of the client.
        tail
            Logs without an offset begin this many bytes before their end; None: at the start.
        """
        self._events, self._tail, self._cursor = events, tail, cursor
        self._tasks = None if tasks == "*" else frozenset(tasks.split(","))
        try:
            until: float | None = None
            while until is None or (self._streams and time.monotonic() < until):
                self._send_status()
                self._send_events()
                if until is None:
                    self._open_streams()
                self._forward(POLL)
                if self._ended.is_set() and until is None:
                    until = time.monotonic() + LAST_LINES_SECONDS
            self._send_events()
            self._send_line({"type": "end", "record": self._status.to_json()})
        finally:
            for stream in list(self._streams.values()):
                self._drop(stream)
            self._selector.close()

    def _send_line(self, content: Mapping[str, Any]) -> None:
        self._send(json.dumps(content).encode())

    def _send(self, line: bytes) -> None:
        self._write(line + b"\n")
        self._last_sent = time.monotonic()

    def _send_status(self) -> None:
        now, version = time.monotonic(), self._status.version
        if version != self._version and now >= self._next_status:
            record = self._status.to_json(events=False)
            # The record of a thousand tasks is too large for two updates a second.
            pause = max(STATUS_INTERVAL, len(record["tasks"]) / 100)
            self._version, self._next_status = version, now + pause
            self._send_line({"type": "status", "record": record})
        if now - self._last_sent >= wire.PING_SECONDS:
            self._send_line({"type": "ping"})

    def _send_events(self) -> None:
        if self._events < self._status.event_count:
            for event in self._status.events_after(self._events):
                self._send_line({"type": "event", "event": event})
                self._events += 1

    def _open_streams(self) -> None:
        now = time.monotonic()
        if now < self._next_open:
            return
        self._next_open = now + 0.2
        endpoints = self._endpoints()
        for stream in list(self._streams.values()):
            if endpoints.get(stream.task, stream.endpoint) != stream.endpoint:
                # Another attempt: the rest of the old log is in the job directory. The stream of an
                # agent that leaves is read to its end.
                self._drop(stream)
        for task, endpoint in endpoints.items():
            requested = self._tasks is None or task in self._tasks
            if not requested or task in self._streams or len(self._streams) >= MAX_STREAMS:
                continue
            if endpoint.attempt and now >= self._retry.get(task, 0.0):
                self._retry[task] = now + RETRY_SECONDS
                self._open(task, endpoint)

    def _open(self, task: str, endpoint: AgentEndpoint) -> None:
        attempt = attempt_name(endpoint.epoch, endpoint.attempt)
        query: dict[str, Any] = {"events": 1 << 30, "attempt": attempt}
        for name in STREAMS:
            # A negative offset is counted from the end.
            query[name] = self._cursor.of(LogKey(task, attempt, name), -(self._tail or 0))
        try:
            stream = AgentStream(task, endpoint, self._context, self._token, urlencode(query))
        except AgentStreamError:
            return
        self._streams[task] = stream
        self._selector.register(stream.channel.sock, stream.mask, stream)

    def _drop(self, stream: AgentStream) -> None:
        if self._streams.get(stream.task) is stream:
            del self._streams[stream.task]
            self._selector.unregister(stream.channel.sock)
            stream.channel.close()

    def _forward(self, seconds: float) -> None:
        if not self._streams:
            self._ended.wait(seconds)
            return
        for key, mask in self._selector.select(seconds):
            stream: AgentStream = key.data
            try:
                self._serve(stream, mask)
            except AgentStreamError:
                self._drop(stream)

    def _serve(self, stream: AgentStream, mask: int) -> None:
        for line in stream.serve(mask):
            self._forward_line(stream, line)
        if stream.new_mask() and stream.channel.open:
            self._selector.modify(stream.channel.sock, stream.mask, stream)

    def _forward_line(self, stream: AgentStream, data: bytes) -> None:
        try:
            line = read_link_line(data)
            own = attempt_name(stream.endpoint.epoch, stream.endpoint.attempt)
            found = read_log_line({**line, "task": stream.task}, own)
        except ValueError as exc:
            raise AgentStreamError from exc
        if found is None:
            return
        self._cursor.move(found.key, found.end)
        names = found.key._asdict()
        if line.keys() == _FIELDS[line["type"]] and names.items() <= line.items():
            self._send(data)  # The agent has encoded it.
        else:
            self._send_line({**line, **names})


#: Fields of the lines that are forwarded.
_FIELDS = {
    "log": {"type", "task", "attempt", "stream", "offset", "data"},
    "skip": {"type", "task", "attempt", "stream", "offset", "to"},
}
