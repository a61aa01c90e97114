"""One WebHDFS request over ``http.client``: bodies are sent and read in pieces.

Redirects and retries are up to ``store_webhdfs``.
"""

from __future__ import annotations

import http.client
import json
import socket
import ssl
from contextlib import closing, contextmanager
from typing import Any, Iterator
from urllib.parse import SplitResult, urlsplit

from submarine_runtime.storage.store import Appender, NotThereError, StoreError

COPY_BYTES = 1 << 18
MAX_ANSWER_BYTES = 1 << 20
REDIRECTS = frozenset({301, 302, 303, 307})
#: Permanent errors. Other errors may pass: after a restart, for instance, HDFS fails with a plain
#: IOException until its DataNodes have registered.
_LASTING = frozenset(
    {
        "AccessControlException",
        "AuthorizationException",
        "DSQuotaExceededException",
        "FileAlreadyExistsException",
        "IllegalArgumentException",
        "InvalidPathException",
        "InvalidToken",
        "NSQuotaExceededException",
        "ParentNotDirectoryException",
        "PathComponentTooLongException",
        "QuotaExceededException",
        "SecurityException",
        "UnsupportedOperationException",
    }
)
_LASTING_STATUS = frozenset({400, 401, 403, 404, 405, 413})


class StandbyError(StoreError):
    """The NameNode is in standby or not available; the next one is tried."""


class Answer:
    """A status, headers in lower case, and a body that is read on demand."""

    def __init__(self, response: http.client.HTTPResponse, place: str) -> None:
        self._response = response
        self._place = place
        self.status = response.status
        self.headers = {key.lower(): value for key, value in response.getheaders()}

    def read(self, limit: int) -> bytes:
        """Return at most ``limit`` bytes of the body; empty at its end."""
        try:
            return self._response.read(limit)
        except (OSError, http.client.HTTPException) as exc:
            raise _trouble(self._place, exc) from exc

    def close(self) -> None:
        """Close the response; the connection's own ``close`` leaves the socket open until then."""
        self._response.close()


@contextmanager
def request(
    method: str, url: str, timeout: float, blocks: Any = None, length: int = 0
) -> Iterator[Answer]:
    """Send one request; the connection is closed at the end of the block.

    Raises
    ------
    NotThereError, StandbyError, StoreError
        For an error response, or an error of the connection.
    """
    parts = _parts_of(url)
    connection = _connection(parts.scheme, str(parts.hostname), parts.port, timeout)
    headers = {"Content-Type": "application/octet-stream", "Content-Length": str(length)}
    try:
        try:
            connection.request(
                method,
                f"{parts.path}?{parts.query}",
                body=blocks,
                headers=headers if method == "PUT" else {},
            )
            answer = Answer(connection.getresponse(), parts.netloc)
        except (OSError, http.client.HTTPException) as exc:
            raise _trouble(parts.netloc, exc) from exc
        with closing(answer):
            if answer.status >= 400:
                raise _refusal(answer.status, answer.read(MAX_ANSWER_BYTES), parts.path)
            yield answer
    finally:
        connection.close()


class Upload(Appender):
    """The body of a PUT, sent in chunks over one connection as data arrives."""

    def __init__(self, url: str, timeout: float) -> None:
        parts = _parts_of(url)
        self._place, self._path = parts.netloc, parts.path
        self._connection = _connection(parts.scheme, str(parts.hostname), parts.port, timeout)
        try:
            self._connection.putrequest("PUT", f"{parts.path}?{parts.query}")
            self._connection.putheader("Content-Type", "application/octet-stream")
            self._connection.putheader("Transfer-Encoding", "chunked")
            self._connection.endheaders()
        except (OSError, http.client.HTTPException) as exc:
            self.abort()
            raise _trouble(self._place, exc) from exc

    def append(self, data: bytes) -> None:
        """See ``Appender.append``."""
        if data:
            self._send(b"%x\r\n%s\r\n" % (len(data), data))

    def close(self) -> None:
        """See ``Appender.close``."""
        self._send(b"0\r\n\r\n")
        try:
            with self._connection.getresponse() as response:
                if response.status >= 400:
                    raise _refusal(response.status, response.read(MAX_ANSWER_BYTES), self._path)
        except (OSError, http.client.HTTPException) as exc:
            raise _trouble(self._place, exc) from exc
        finally:
            self.abort()

    def abort(self) -> None:
        """See ``Appender.abort``."""
        self._connection.close()

    def _send(self, data: bytes) -> None:
        try:
            self._connection.send(data)
        except (OSError, http.client.HTTPException) as exc:
            raise _trouble(self._place, exc) from exc


def _parts_of(url: str) -> SplitResult:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise StoreError(f"WebHDFS sent us to {url[:200]!r}, which is not an http address")
    return parts


def json_of(body: bytes) -> dict[str, Any]:
    """Return a JSON object; an empty one for anything else."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _connection(
    scheme: str, host: str, port: int | None, timeout: float
) -> http.client.HTTPConnection:
    if scheme == "https":
        context = ssl.create_default_context()
        return http.client.HTTPSConnection(host, port, timeout=timeout, context=context)
    return http.client.HTTPConnection(host, port, timeout=timeout)


def _trouble(place: str, exc: Exception) -> StoreError:
    what = "no answer in time" if isinstance(exc, socket.timeout) else str(exc)
    return StandbyError(f"WebHDFS at {place}: {what}", True)


def _refusal(status: int, body: bytes, path: str) -> StoreError:
    remote = json_of(body).get("RemoteException") or {}
    name = str(remote.get("exception", ""))
    message = str(remote.get("message", "")).splitlines()
    sentence = message[0][:300] if message else f"status {status}"
    text = f"HDFS refused {path[len('/webhdfs/v1') :]}: {sentence}"
    if name == "FileNotFoundException":
        return NotThereError(text)
    if name == "StandbyException":
        return StandbyError(text, True)
    lasting = name in _LASTING if name else status in _LASTING_STATUS
    return StoreError(text, transient=not lasting, full=name.endswith("QuotaExceededException"))
