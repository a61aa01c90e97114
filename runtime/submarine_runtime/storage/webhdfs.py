"""The job directory on HDFS through WebHDFS, without retries.

This module follows redirects: only CREATE and OPEN have one, and the body is sent to the DataNode.
A plain RENAME returns ``false`` if the target exists: that is the exclusive publish. Absolute paths
name any file of the same HDFS.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import ssl
from contextlib import closing, contextmanager
from typing import Any, Iterable, Iterator, Sequence
from urllib.parse import SplitResult, quote, urlencode, urlsplit

from submarine_runtime.files import temporary_name
from submarine_runtime.storage.store import (
    Appender,
    Entry,
    NotFoundError,
    Store,
    StoreError,
)
from submarine_runtime.translation import _

#: Only small files are read whole: claims, requests to cancel, manifests, records.
MAX_READ_BYTES = 64 << 20
#: The NameNode operations of a create: redirect, create, addBlock and complete.
CREATE_OPERATIONS = 4
COPY_BYTES = 1 << 18
MAX_ANSWER_BYTES = 1 << 20
REDIRECTS = frozenset({301, 302, 303, 307})
#: Permanent errors. Other errors may pass: after a restart, for instance, HDFS fails with a plain
#: IOException until its DataNodes have registered.
_PERMANENT = frozenset(
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
_PERMANENT_STATUS = frozenset({400, 401, 403, 404, 405, 413})


class WebHdfsStore(Store):
    """A directory on HDFS.

    Parameters
    ----------
    urls
        ``http://host:port`` of each NameNode; the one that responded last is tried first.
    timeout
        Seconds that one connect, read or write on a socket may take.
    """

    publish_cost = CREATE_OPERATIONS + 1
    label = "HDFS"

    def __init__(
        self, urls: Sequence[str], root: str, user: str | None, timeout: float = 20.0
    ) -> None:
        super().__init__()
        if not urls:
            raise ValueError("a webhdfs job store needs the URL of at least one NameNode")
        self._urls = [url.rstrip("/") for url in urls]
        self._root = root.rstrip("/")
        self._user = user
        self._timeout = timeout

    def _full(self, path: str) -> str:
        return path if path.startswith("/") else f"{self._root}/{path}".rstrip("/")

    def read(self, path: str) -> bytes | None:
        """See ``Store.read``."""
        try:
            return b"".join(self.stream(path, 0, MAX_READ_BYTES))
        except NotFoundError:
            return None

    def stream(self, path: str, offset: int = 0, length: int | None = None) -> Iterator[bytes]:
        """See ``Store.stream``."""
        if length == 0:
            return
        query: dict[str, Any] = {"offset": str(offset)} if offset else {}
        if length is not None:
            query["length"] = str(length)
        status, headers, body = self._namenode("GET", path, "OPEN", **query)
        if status not in REDIRECTS:
            yield body
            return
        with request("GET", headers.get("location", ""), self._timeout) as answer:
            expected = int(answer.headers.get("content-length") or 0)
            while block := answer.read(COPY_BYTES):
                expected -= len(block)
                yield block
            if expected > 0:
                raise StoreError(
                    _("the answer for {path} ended {expected} bytes too early").format(
                        path=path, expected=expected
                    ),
                    True,
                )

    def exists(self, path: str) -> bool:
        """See ``Store.exists``."""
        return self.stat(path) is not None

    def appender(self, path: str) -> Appender:
        """See ``Store.appender``: a body of unknown length.

        A DataNode completes the file with the received data if the client disconnects (tested).
        """
        return Upload(self._location(path), self._timeout)

    def stat(self, path: str) -> Entry | None:
        """See ``Store.stat``."""
        try:
            _, _, body = self._namenode("GET", path, "GETFILESTATUS")
        except NotFoundError:
            return None
        status = json_of(body).get("FileStatus") or {}
        return _entry(status, path.rstrip("/").rpartition("/")[2])

    def entries(self, path: str) -> list[Entry]:
        """See ``Store.entries``."""
        try:
            _, _, body = self._namenode("GET", path, "LISTSTATUS", limit=MAX_READ_BYTES)
        except NotFoundError:
            return []
        found = (json_of(body).get("FileStatuses") or {}).get("FileStatus") or []
        return [_entry(status) for status in found if status.get("pathSuffix")]

    def publish_exclusive(self, path: str, data: bytes) -> bool:
        """See ``Store.publish_exclusive``."""
        temporary = temporary_name(path)
        self._create(temporary, [data], len(data))
        try:
            if self._rename(temporary, path):
                return True
        except StoreError:
            # The reply may be lost after the rename: the content of the file decides.
            if self.read(path) == data:
                self.files += 1
                return True
            raise
        self._delete_quietly(temporary)
        return self.read(path) == data

    def publish(self, path: str, data: bytes) -> None:
        """See ``Store.publish``."""
        self.put(path, [data], len(data))

    def upload(self, path: str, source: str, offset: int = 0, length: int | None = None) -> int:
        """See ``Store.upload``."""
        try:
            available = max(0, os.path.getsize(source) - offset)
            length = available if length is None else min(length, available)
            self.put(path, _blocks(source, offset, length), length)
        except StoreError:
            raise
        except OSError as exc:
            raise StoreError(
                _("cannot read {source}: {strerror}").format(source=source, strerror=exc.strerror)
            ) from exc
        return length

    def put(self, path: str, blocks: Iterable[bytes], length: int) -> None:
        """See ``Store.put``."""
        temporary = temporary_name(path)
        try:
            self._create(temporary, blocks, length)
        except StandbyError:
            raise  # No NameNode is available to delete it.
        except BaseException:
            self._delete_quietly(temporary)
            raise
        self.move(temporary, path)

    def move(self, path: str, to: str) -> None:
        """See ``Store.move``."""
        body = self._namenode(
            "PUT", path, "RENAME", destination=self._full(to), renameoptions="OVERWRITE"
        )[2]
        if json_of(body).get("boolean") is False:
            # A gateway that ignores the option: delete the old file first.
            self.delete(to)
            if not self._rename(path, to):
                raise StoreError(_("cannot rename a finished upload to {to}").format(to=to), True)
            return
        self.files += 1

    def delete(self, path: str, recursive: bool = False) -> None:
        """See ``Store.delete``."""
        self._namenode("DELETE", path, "DELETE", recursive="true" if recursive else "false")

    def make_directory(self, path: str) -> None:
        """See ``Store.make_directory``."""
        self._namenode("PUT", path, "MKDIRS", permission="700")

    def _create(self, path: str, blocks: Any, length: int) -> None:
        with request("PUT", self._location(path), self._timeout, blocks, length):
            pass

    def _location(self, path: str) -> str:
        """Return the URL for the body of a new file."""
        status, headers, body = self._namenode(
            "PUT", path, "CREATE", overwrite="true", permission="600"
        )
        if status not in REDIRECTS:
            raise StoreError(
                _("WebHDFS answered {status} where CREATE should redirect: {body!r}").format(
                    status=status, body=body
                )
            )
        self.operations += CREATE_OPERATIONS - 1
        return headers.get("location", "")

    def _rename(self, temporary: str, path: str) -> bool:
        _, _, body = self._namenode("PUT", temporary, "RENAME", destination=self._full(path))
        done = bool(json_of(body).get("boolean"))
        self.files += int(done)
        return done

    def _delete_quietly(self, path: str) -> None:
        try:
            self.delete(path)
        except StoreError:
            pass  # Readers skip the name; it is removed with the job directory.

    def _namenode(
        self,
        method: str,
        path: str,
        operation: str,
        limit: int = MAX_ANSWER_BYTES,
        **query: str,
    ) -> tuple[int, dict[str, str], bytes]:
        if method != "GET":
            self.gate()
        query["op"] = operation
        if self._user:
            query["user.name"] = self._user
        target = f"/webhdfs/v1{quote(self._full(path) or '/')}?{urlencode(query)}"
        failure: StoreError | None = None
        for url in list(self._urls):
            self.operations += 1
            try:
                with request(method, url + target, self._timeout) as answer:
                    result = answer.status, answer.headers, answer.read(limit)
            except StandbyError as exc:
                failure = exc
                continue
            if url != self._urls[0]:
                self._urls = [url, *(other for other in self._urls if other != url)]
            return result
        assert failure is not None
        raise failure


def _blocks(source: str, offset: int, length: int) -> Iterator[bytes]:
    try:
        with open(source, "rb") as file:
            file.seek(offset)
            while length > 0:
                block = file.read(min(COPY_BYTES, length))
                if not block:
                    raise StoreError(
                        _("{source} became shorter while it was saved").format(source=source)
                    )
                length -= len(block)
                yield block
    except OSError as exc:  # Not an error of the connection, which would be retried.
        raise StoreError(
            _("cannot read {source}: {strerror}").format(source=source, strerror=exc.strerror)
        ) from exc


def _entry(status: dict[str, Any], name: str = "") -> Entry:
    return Entry(
        str(status.get("pathSuffix") or name),
        int(status.get("length", 0)),
        status.get("type") == "DIRECTORY",
        float(status.get("modificationTime", 0)) / 1000,
        str(status.get("owner") or ""),
    )


class StandbyError(StoreError):
    """The NameNode is in standby or not available; the next one is tried."""


class Response:
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
            raise _connection_error(self._place, exc) from exc

    def close(self) -> None:
        """Close the response; the connection's own ``close`` leaves the socket open until then."""
        self._response.close()


@contextmanager
def request(
    method: str, url: str, timeout: float, blocks: Any = None, length: int = 0
) -> Iterator[Response]:
    """Send one request; the connection is closed at the end of the block.

    Parameters
    ----------
    timeout
        Seconds for each socket operation.
    blocks
        Body: bytes or an iterable of bytes; None: no body.
    length
        Length of the body in bytes.

    Raises
    ------
    NotFoundError, StandbyError, StoreError
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
            answer = Response(connection.getresponse(), parts.netloc)
        except (OSError, http.client.HTTPException) as exc:
            raise _connection_error(parts.netloc, exc) from exc
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
            raise _connection_error(self._place, exc) from exc

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
            raise _connection_error(self._place, exc) from exc
        finally:
            self.abort()

    def abort(self) -> None:
        """See ``Appender.abort``."""
        self._connection.close()

    def _send(self, data: bytes) -> None:
        try:
            self._connection.send(data)
        except (OSError, http.client.HTTPException) as exc:
            raise _connection_error(self._place, exc) from exc


def _parts_of(url: str) -> SplitResult:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise StoreError(
            _("WebHDFS redirected to {url!r}, which is not an http address").format(url=url[:200])
        )
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


def _connection_error(place: str, exc: Exception) -> StoreError:
    what = _("no answer in time") if isinstance(exc, socket.timeout) else str(exc)
    return StandbyError(_("WebHDFS at {place}: {what}").format(place=place, what=what), True)


def _refusal(status: int, body: bytes, path: str) -> StoreError:
    remote = json_of(body).get("RemoteException") or {}
    name = str(remote.get("exception", ""))
    message = str(remote.get("message", "")).splitlines()
    sentence = message[0][:300] if message else _("status {status}").format(status=status)
    text = _("HDFS refused {path}: {sentence}").format(
        path=path[len("/webhdfs/v1") :], sentence=sentence
    )
    if name == "FileNotFoundException":
        return NotFoundError(text)
    if name == "StandbyException":
        return StandbyError(text, True)
    permanent = name in _PERMANENT if name else status in _PERMANENT_STATUS
    return StoreError(text, transient=not permanent, full=name.endswith("QuotaExceededException"))
