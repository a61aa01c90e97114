"""Send requests to the port of a running job: HTTPS with its pinned certificate and its token.

The port belongs to the agent of a single-task job, else to the coordinator; both accept the same
requests. A client handles one request or one stream at a time.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from http.client import HTTPResponse, IncompleteRead
from typing import Any
from urllib.parse import urlencode

from submarine_jobs import model
from submarine_jobs.access.credentials import JobSecret
from submarine_jobs.errors import ClusterError, RefusedError, SubmarineError
from submarine_runtime.protocol import JobRecord, LogCursor, LogKey, LogLine, layout, wire
from submarine_runtime.translation import _

#: Timeout of a connection or a response, in seconds.
ANSWER_SECONDS = 5.0
#: Timeout of the upload of a model, in seconds.
SAVE_SECONDS = 600.0
MAX_LINE = 4 << 20


class NotListeningError(ClusterError):
    """The node refuses connections to the port of the job: its agent or coordinator has ended."""


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


def tls_context(secret: JobSecret) -> ssl.SSLContext:
    """Return a context that accepts only the certificate of the job."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # The certificate is pinned, so the host name is not checked.
    context.check_hostname = False
    context.load_verify_locations(cadata=secret.certificate)
    return context


class AgentClient:
    """Client of one agent; raises ClusterError if it cannot be reached."""

    def __init__(self, address: AgentAddress, timeout: float = ANSWER_SECONDS) -> None:
        self._address = address
        self._timeout = timeout

    def status(self) -> JobRecord:
        """Return the current job record; raise ``InvalidRecordError`` if it is invalid."""
        return model.read_record(self._request("GET", wire.STATUS)[1])

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
        headers, body = self._request("GET", f"{wire.LOG}?{query}")
        start = int(headers.get(wire.OFFSET_HEADER) or max(offset, 0))
        length = int(headers.get(wire.LENGTH_HEADER) or start + len(body))
        return LogChunk(stream, start, body, task, attempt or layout.FIRST_ATTEMPT), length

    def times(self, task: str, stream: str, attempt: str) -> bytes:
        """Return lines ``offset seconds``: the time at which the log had that length."""
        query = urlencode({"task": task, "stream": stream, "attempt": attempt})
        return self._request("GET", f"{wire.TIMES}?{query}")[1]

    def cancel(self, by: str, why: str) -> None:
        """Make the agent stop the program, save its outputs and record the job as cancelled."""
        self._request("POST", wire.CANCEL, json.dumps({"by": by, "why": why}).encode())

    def look(self) -> None:
        """Report an open TensorBoard: its files are uploaded more often for a minute."""
        self._request("POST", wire.LOOK, b"{}")

    def renew(self) -> None:
        """Renew the lease of the job."""
        self._request("POST", wire.RENEW, b"{}")

    def save(self, name: str, timeout: float = SAVE_SECONDS) -> dict[str, Any]:
        """Upload the current model directory as a new version; return its JSON."""
        order = json.dumps({"name": name}).encode()
        _status, body = self._request("POST", wire.SAVE, order, timeout)
        try:
            found = json.loads(body)
        except (ValueError, RecursionError) as exc:
            raise ClusterError(_("The agent of the job did not send valid JSON.")) from exc
        return found if isinstance(found, dict) else {}

    def stream(
        self, events: int, stdout: int = 0, stderr: int = 0, **position: str | int
    ) -> Iterator[dict[str, Any]]:
        """Yield the lines of the live stream as JSON until the job ends or the connection breaks.

        ``position`` is for a coordinator: ``tasks``, ``at``, ``tail`` of ``protocol.wire``.
        """
        place: Mapping[str, str | int] = {"stdout": stdout, "stderr": stderr, **position}
        query = urlencode({"events": events, **place})
        connection = self._connect(wire.PING_SECONDS * 3)
        try:
            connection.request("GET", f"{wire.STREAM}?{query}", headers=self._headers())
            with connection.getresponse() as response:
                if response.status != http.client.OK:
                    raise ClusterError(
                        _("The agent answered {status} to a request to follow.").format(
                            status=response.status
                        )
                    )
                while line := response.readline(MAX_LINE):
                    yield json.loads(line)
        except (OSError, http.client.HTTPException, ValueError, RecursionError) as exc:
            raise ClusterError(
                _("The connection to the agent broke: {error}.").format(error=exc)
            ) from exc
        finally:
            connection.close()

    def _request(
        self, method: str, path: str, body: bytes | None = None, timeout: float | None = None
    ) -> tuple[http.client.HTTPMessage, bytes]:
        connection = self._connect(timeout or self._timeout)
        try:
            connection.request(method, path, body=body, headers=self._headers())
            # A response after which the server closes keeps the socket open besides the connection.
            with connection.getresponse() as response:
                data = response.read(wire.MAX_LOG_BYTES * 4)
                check_complete(response, data)
        except (OSError, http.client.HTTPException) as exc:
            kind = NotListeningError if isinstance(exc, ConnectionRefusedError) else ClusterError
            raise kind(
                _("The agent of the job cannot be reached: {error}.").format(error=exc)
            ) from exc
        finally:
            connection.close()
        if response.status >= http.client.BAD_REQUEST:
            raise _refused(response.status, data)
        return response.headers, data

    def _connect(self, timeout: float) -> http.client.HTTPSConnection:
        address = self._address
        context = tls_context(address.secret)
        return http.client.HTTPSConnection(
            address.host, address.port, timeout=timeout, context=context
        )

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._address.secret.token}"}


def _refused(status: int, data: bytes) -> SubmarineError:
    """Return the error for a rejected request, with the sentence of the job if there is one."""
    with contextlib.suppress(ValueError, AttributeError, RecursionError):
        sentence = str(json.loads(data).get("error") or "")
        if status == http.client.CONFLICT and sentence:
            return RefusedError(sentence[:1000])
    return ClusterError(_("The agent of the job answered {status}.").format(status=status))


def check_complete(reply: HTTPResponse, data: bytes = b"") -> None:
    """Raise ``IncompleteRead`` if the response is incomplete; ``data`` is the received part.

    ``http.client`` does not detect this when a body is read with a limit.
    """
    if reply.length:
        raise IncompleteRead(data, reply.length)
