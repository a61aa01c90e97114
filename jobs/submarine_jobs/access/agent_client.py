"""Talk to a running job on its port: HTTPS with the job's pinned certificate and its token.

The port is the agent's for a job of one task, else the coordinator's; both take the same requests.
One request or one stream at a time; does not decide when to talk (``watch``) and does not fall
back to shipped data (``following``).
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from submarine_jobs.access.credentials import JobSecret
from submarine_jobs.access.incomplete_response import must_be_whole
from submarine_jobs.errors import ClusterError, RefusedError, SubmarineError
from submarine_runtime.protocol import layout, wire
from submarine_runtime.protocol.record import JobRecord

#: Seconds for a connection or an answer; a live view that takes longer is no live view.
ANSWER_SECONDS = 5.0
#: Seconds that the upload of a model may take.
SAVE_SECONDS = 600.0
MAX_LINE = 4 << 20
#: What the agent of a job of one task runs; it does not say so.
FIRST_ATTEMPT = layout.attempt_name(1, 1)


class NotListeningError(ClusterError):
    """The node refuses connections to the port of the job: its agent or coordinator has ended."""


@dataclass(frozen=True)
class AgentAddress:
    """Where an agent listens, and what it takes to be let in."""

    host: str
    port: int
    secret: JobSecret


@dataclass(frozen=True)
class LogChunk:
    """A piece of a log: ``offset`` of its first byte in the stream of that task's attempt.

    Parameters
    ----------
    note
        A sentence about the log instead of a piece of it (``data`` is empty): the task goes on
        with a new attempt, or something cannot be had any more.
    """

    stream: str
    offset: int
    data: bytes
    task: str = "worker:0"
    attempt: str = FIRST_ATTEMPT
    note: str = ""

    @property
    def end(self) -> int:
        """Offset just behind this piece."""
        return self.offset + len(self.data)


def tls_context(secret: JobSecret) -> ssl.SSLContext:
    """A context that accepts one certificate only: the job's own."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # The certificate itself is pinned, so a host name would add nothing.
    context.check_hostname = False
    context.load_verify_locations(cadata=secret.certificate)
    return context


class AgentClient:
    """Requests to one agent; raises ClusterError when it cannot be reached."""

    def __init__(self, address: AgentAddress, timeout: float = ANSWER_SECONDS) -> None:
        self._address = address
        self._timeout = timeout

    def status(self) -> JobRecord:
        """The job record as it stands now."""
        _, body = self._request("GET", wire.STATUS)
        try:
            return JobRecord.from_json(json.loads(body))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as exc:
            raise ClusterError("The agent of the job answered with what is no record.") from exc

    def log(
        self,
        task: str,
        stream: str,
        offset: int,
        limit: int = wire.MAX_LOG_BYTES,
        attempt: str | None = None,
    ) -> tuple[LogChunk, int]:
        """Bytes from ``offset`` (negative: from the end) and the length of the log so far.

        ``attempt`` None asks for the newest one.
        """
        words = {"task": task, "stream": stream, "offset": offset, "limit": limit}
        query = urlencode({**words, "attempt": attempt} if attempt else words)
        headers, body = self._request("GET", f"{wire.LOG}?{query}")
        start = int(headers.get(wire.OFFSET_HEADER) or max(offset, 0))
        length = int(headers.get(wire.LENGTH_HEADER) or start + len(body))
        return LogChunk(stream, start, body, task, attempt or FIRST_ATTEMPT), length

    def times(self, task: str, stream: str, attempt: str) -> bytes:
        """Lines ``offset seconds``: when the log had which length."""
        query = urlencode({"task": task, "stream": stream, "attempt": attempt})
        return self._request("GET", f"{wire.TIMES}?{query}")[1]

    def cancel(self, by: str, why: str) -> None:
        """Ask the agent to end the program, save what there is and record the job as cancelled."""
        self._request("POST", wire.CANCEL, json.dumps({"by": by, "why": why}).encode())

    def look(self) -> None:
        """Say that somebody looks at the TensorBoard files; for a minute they come sooner."""
        self._request("POST", wire.LOOK, b"{}")

    def renew(self) -> None:
        """Say that who started the job is still there: its lease begins anew."""
        self._request("POST", wire.RENEW, b"{}")

    def save(self, name: str, timeout: float = SAVE_SECONDS) -> dict[str, Any]:
        """Have the model directory uploaded as it is now, as a version; its JSON."""
        order = json.dumps({"name": name}).encode()
        _, body = self._request("POST", wire.SAVE, order, timeout)
        try:
            found = json.loads(body)
        except (ValueError, RecursionError) as exc:
            raise ClusterError("The agent of the job answered with what is no JSON.") from exc
        return found if isinstance(found, dict) else {}

    def stream(
        self, events: int, stdout: int = 0, stderr: int = 0, **position: str | int
    ) -> Iterator[dict[str, Any]]:
        """Lines of the live stream as JSON, until the job has ended or the connection breaks.

        ``position`` is for a coordinator: ``tasks``, ``at``, ``tail`` as in ``protocol.wire``.
        """
        place: Mapping[str, str | int] = {"stdout": stdout, "stderr": stderr, **position}
        query = urlencode({"events": events, **place})
        connection = self._connect(wire.PING_SECONDS * 3)
        try:
            connection.request("GET", f"{wire.STREAM}?{query}", headers=self._headers())
            with connection.getresponse() as response:
                if response.status != http.client.OK:
                    raise ClusterError(
                        f"The agent answered {response.status} to a request to follow."
                    )
                while line := response.readline(MAX_LINE):
                    yield json.loads(line)
        except (OSError, http.client.HTTPException, ValueError, RecursionError) as exc:
            raise ClusterError(f"The connection to the agent broke: {exc}.") from exc
        finally:
            connection.close()

    def _request(
        self, method: str, path: str, body: bytes | None = None, timeout: float | None = None
    ) -> tuple[http.client.HTTPMessage, bytes]:
        connection = self._connect(timeout or self._timeout)
        try:
            connection.request(method, path, body=body, headers=self._headers())
            # An answer after which the server closes holds the socket beside the connection.
            with connection.getresponse() as response:
                data = response.read(wire.MAX_LOG_BYTES * 4)
                must_be_whole(response, data)
        except (OSError, http.client.HTTPException) as exc:
            kind = NotListeningError if isinstance(exc, ConnectionRefusedError) else ClusterError
            raise kind(f"The agent of the job cannot be reached: {exc}.") from exc
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
    """What a job that did not do what it was asked says, where it says anything."""
    with contextlib.suppress(ValueError, AttributeError, RecursionError):
        sentence = str(json.loads(data).get("error") or "")
        if status == http.client.CONFLICT and sentence:
            return RefusedError(sentence[:1000])
    return ClusterError(f"The agent of the job answered {status}.")


def chunk_of(line: Mapping[str, Any]) -> LogChunk:
    """The piece of log in a ``log`` line of the stream."""
    data = base64.b64decode(line["data"])
    return LogChunk(line["stream"], int(line["offset"]), data, line["task"], attempt_of(line))


def attempt_of(line: Mapping[str, Any]) -> str:
    """The attempt that a ``log`` or ``skip`` line is about; an agent names none."""
    attempt = line.get("attempt")
    if isinstance(attempt, str) and layout.parse_attempt(attempt):
        return attempt
    return FIRST_ATTEMPT
