"""Send requests to the port of a running job: HTTPS with its pinned certificate and its token.

The port belongs to the agent of a single-task job, else to the coordinator; both accept the same
requests. Requests block; the live stream is read with asyncio, so that one thread reads the streams
of many jobs.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import http.client
import json
import ssl
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from submarine_jobs import model
from submarine_jobs.access.credentials import JobSecret
from submarine_jobs.errors import ClusterError, RefusedError, SubmarineError
from submarine_runtime.network import (
    HEAD_END,
    PortResponse,
    client_context,
    port_request,
    request_head,
    response_status,
)
from submarine_runtime.protocol import JobRecord, LogCursor, LogKey, LogLine, layout, wire
from submarine_runtime.translation import _

#: Timeout of a connection or a response, in seconds.
ANSWER_SECONDS = 5.0
#: Timeout of the upload of a model, in seconds.
SAVE_SECONDS = 600.0
#: Timeout of the stacks of a large job, in seconds.
STACK_SECONDS = 120.0
MAX_LINE = 4 << 20
#: Bytes of the stream that are read at a time.
READ = 256 << 10
#: Timeout of a line of the stream; an agent sends one at least every ``PING_SECONDS``.
SILENCE = wire.PING_SECONDS * 3
#: More events than a job has.
NO_EVENTS = 1 << 30


class NotListeningError(ClusterError):
    """The node refuses connections to the port of the job: its agent or coordinator has ended."""


class NoTokenError(ClusterError):
    """The job directory is readable, but not the token that the port of the job requires."""


class StreamBrokenError(Exception):
    """The connection to the agent failed or ended before the job."""


@dataclass(frozen=True)
class AgentAddress:
    """Address and credentials of an agent or coordinator."""

    host: str
    port: int
    secret: JobSecret


@dataclass(frozen=True)
class LogChunk:
    """Part of a log: ``offset`` is that of its first byte in the stream of the attempt.

    Parameters
    ----------
    note
        A sentence about the log instead of data (``data`` is empty): a new attempt has started, or
        part of the log is not available any more.
    """

    stream: str
    offset: int
    data: bytes
    task: str = "worker:0"
    attempt: str = layout.FIRST_ATTEMPT
    note: str = ""

    @property
    def end(self) -> int:
        """Offset of the first byte after this chunk."""
        return self.offset + len(self.data)

    @property
    def key(self) -> LogKey:
        """The log of this chunk."""
        return LogKey(self.task, self.attempt, self.stream)

    @classmethod
    def of(cls, line: LogLine) -> LogChunk:
        """Return the chunk of a ``log`` line of the stream; raise ValueError if it is invalid."""
        data = base64.b64decode(line.data or "", validate=True)
        return cls(line.key.stream, line.begin, data, line.key.task, line.key.attempt)

    def fresh(self, cursor: LogCursor) -> LogChunk | None:
        """Return the part that ``cursor`` has not read, or None; move the cursor behind it.

        A chunk that begins behind the cursor is returned unchanged: callers check for gaps.
        """
        begin = cursor.take(self.key, self.offset, self.end)
        if begin >= self.end:
            return None
        if begin == self.offset:
            return self
        return replace(self, offset=begin, data=self.data[begin - self.offset :])


@functools.lru_cache(64)
def tls_context(secret: JobSecret) -> ssl.SSLContext:
    """Return a context that accepts only the certificate of the job."""
    return client_context(secret.certificate)


class AgentClient:
    """Client of one agent; raises ClusterError if it cannot be reached."""

    def __init__(self, address: AgentAddress, timeout: float = ANSWER_SECONDS) -> None:
        self._address = address
        self._timeout = timeout

    def status(self) -> JobRecord:
        """Return the current job record; raise ``InvalidRecordError`` if it is invalid."""
        return model.read_record(self._request("GET", wire.STATUS).body)

    def log(
        self,
        task: str,
        stream: str,
        offset: int,
        limit: int = wire.MAX_LOG_BYTES,
        attempt: str | None = None,
    ) -> tuple[LogChunk, int]:
        """Return the log from ``offset`` (negative: from the end) and its current length.

        ``attempt`` None selects the newest attempt.
        """
        values = {"task": task, "stream": stream, "offset": offset, "limit": limit}
        query = urlencode({**values, "attempt": attempt} if attempt else values)
        _status, headers, body = self._request("GET", f"{wire.LOG}?{query}")
        start = int(headers.get(wire.OFFSET_HEADER) or max(offset, 0))
        length = int(headers.get(wire.LENGTH_HEADER) or start + len(body))
        return LogChunk(stream, start, body, task, attempt or layout.FIRST_ATTEMPT), length

    def times(self, task: str, stream: str, attempt: str) -> bytes:
        """Return lines ``offset seconds``: the time at which the log had that length."""
        query = urlencode({"task": task, "stream": stream, "attempt": attempt})
        return self._request("GET", f"{wire.TIMES}?{query}").body

    def stacks(self, task: str | None = None) -> dict[str, Any]:
        """Return the stacks of the program's processes now; see ``stacks.Report``."""
        path = wire.STACKS if task is None else f"{wire.STACKS}?{urlencode({'task': task})}"
        return _object(self._request("GET", path, timeout=STACK_SECONDS).body)

    def cancel(self, by: str, why: str) -> None:
        """Make the agent stop the program, save its outputs and record the job as cancelled."""
        self._request("POST", wire.CANCEL, json.dumps({"by": by, "why": why}).encode())

    def look(self) -> None:
        """Report an open TensorBoard: its files are uploaded more often for a minute."""
        self._request("POST", wire.LOOK, b"{}")

    def renew(self) -> None:
        """Renew the lease of the job."""
        self._request("POST", wire.RENEW, b"{}")

    def send_tokens(self, text: str) -> None:
        """Deliver fresh delegation tokens."""
        self._request("POST", wire.TOKENS, json.dumps({"tokens": text}).encode())

    def save(self, name: str, timeout: float = SAVE_SECONDS) -> dict[str, Any]:
        """Upload the current model directory as a new version; return its JSON."""
        order = json.dumps({"name": name}).encode()
        return _object(self._request("POST", wire.SAVE, order, timeout).body)

    async def stream(
        self, position: Mapping[str, str | int], events: int = NO_EVENTS
    ) -> AsyncGenerator[dict[str, Any], None]:
        """Yield the lines of the live stream until ``end``.

        Parameters
        ----------
        position
            Query: offsets and tasks; see ``LogCursor.query`` and ``protocol.wire``.
        events
            Number of events to skip; by default all.

        Raises
        ------
        StreamBrokenError
            If the agent cannot be reached, rejects the request, or sends nothing in time.
        """
        # cost: asyncio, which only streams need.
        import asyncio

        address, writer = self._address, None
        try:
            opening = asyncio.open_connection(
                address.host, address.port, ssl=tls_context(address.secret), limit=MAX_LINE
            )
            reader, writer = await asyncio.wait_for(opening, self._timeout)
            query = urlencode({"events": events, **position})
            writer.write(request_head(f"{wire.STREAM}?{query}", address.secret.token))
            head = await asyncio.wait_for(reader.readuntil(HEAD_END), self._timeout)
            if response_status(head) != http.client.OK:
                raise StreamBrokenError(
                    _("the agent answered {status}").format(status=response_status(head))
                )
            pending = b""
            # A timeout is costly, so it belongs to all lines that have arrived.
            while data := await asyncio.wait_for(reader.read(READ), SILENCE):
                whole, newline, rest = data.rpartition(b"\n")
                if len(pending) + len(data) > MAX_LINE:
                    raise StreamBrokenError(_("the agent sent a line that is too long"))
                if not newline:
                    pending += data
                    continue
                lines, pending = (pending + whole).split(b"\n"), rest
                for line in lines:
                    message = json.loads(line)
                    if isinstance(message, dict):
                        yield message
                        if message.get("type") == "end":
                            return
        except (OSError, asyncio.IncompleteReadError, ValueError, RecursionError) as exc:
            raise StreamBrokenError(str(exc)) from exc
        except asyncio.LimitOverrunError as exc:
            raise StreamBrokenError(_("the agent sent no valid response")) from exc
        finally:
            if writer is not None:
                # Closing in order waits for the other side and leaves the socket open so long.
                writer.transport.abort()

    def _request(
        self, method: str, path: str, body: bytes | None = None, timeout: float | None = None
    ) -> PortResponse:
        connection = self._connect(timeout or self._timeout)
        try:
            response = port_request(connection, self._address.secret.token, method, path, body)
        except (OSError, http.client.HTTPException) as exc:
            kind = NotListeningError if isinstance(exc, ConnectionRefusedError) else ClusterError
            raise kind(
                _("The agent of the job cannot be reached: {error}.").format(error=exc)
            ) from exc
        if response.status >= http.client.BAD_REQUEST:
            raise _refused(response.status, response.body)
        return response

    def _connect(self, timeout: float) -> http.client.HTTPSConnection:
        address = self._address
        context = tls_context(address.secret)
        return http.client.HTTPSConnection(
            address.host, address.port, timeout=timeout, context=context
        )


def _object(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError) as exc:
        raise ClusterError(_("The agent of the job did not send valid JSON.")) from exc
    return found if isinstance(found, dict) else {}


def _refused(status: int, data: bytes) -> SubmarineError:
    """Return the error for a rejected request, with the sentence of the job if there is one."""
    with contextlib.suppress(ValueError, AttributeError, RecursionError):
        sentence = str(json.loads(data).get("error") or "")
        if status == http.client.CONFLICT and sentence:
            return RefusedError(sentence[:1000])
    return ClusterError(_("The agent of the job answered {status}.").format(status=status))
