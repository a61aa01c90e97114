"""The job directory on HDFS through WebHDFS and ``http.client``; does no retries.

Redirects are followed by hand, because only CREATE and OPEN have one and it must carry the body to
the DataNode. RENAME answers ``false`` where the target exists: that is the exclusive publish.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import ssl
from typing import Any, Iterator, Sequence
from urllib.parse import quote, urlencode, urlsplit

from submarine_runtime.agent.store import Store, StoreError, temporary_name

COPY_BYTES = 1 << 18
MAX_ANSWER_BYTES = 1 << 20
#: Only small files are ever read: claims, requests to cancel, our own record.
MAX_READ_BYTES = 64 << 20
#: A create costs the NameNode the redirect, create, addBlock and complete.
CREATE_OPERATIONS = 4
#: What no repetition mends. Anything else may pass: after a restart, for instance, HDFS refuses
#: with a plain IOException until its DataNodes have come back.
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


class _StandbyError(StoreError):
    """A NameNode that is not the active one, or is not there: ask the next."""


class WebHdfsStore(Store):
    """A directory on HDFS.

    Parameters
    ----------
    urls
        ``http://host:port`` of each NameNode; the one that answered last is asked first.
    timeout
        Seconds that one connect, read or write on a socket may take.
    """

    publish_cost = CREATE_OPERATIONS + 1

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

    def read(self, path: str) -> bytes | None:
        """See ``Store.read``."""
        try:
            status, headers, body = self._namenode("GET", path, "OPEN")
            if status in (301, 302, 303, 307):
                _, _, body = self._send("GET", headers.get("location", ""), limit=MAX_READ_BYTES)
            return body
        except FileNotFoundError:
            return None

    def exists(self, path: str) -> bool:
        """See ``Store.exists``."""
        try:
            self._namenode("GET", path, "GETFILESTATUS")
        except FileNotFoundError:
            return False
        return True

    def publish_exclusive(self, path: str, data: bytes) -> bool:
        """See ``Store.publish_exclusive``."""
        temporary = temporary_name(path)
        self._create(temporary, [data], len(data))
        try:
            if self._rename(temporary, path):
                return True
        except StoreError:
            # The reply may be lost while the rename was done: what lies there decides.
            if self.read(path) == data:
                self.files += 1
                return True
            raise
        self._delete_quietly(temporary)
        return self.read(path) == data

    def publish(self, path: str, data: bytes) -> None:
        """See ``Store.publish``."""
        self._publish(path, [data], len(data))

    def upload(self, path: str, source: str, offset: int = 0, length: int | None = None) -> int:
        """See ``Store.upload``."""
        try:
            available = max(0, os.path.getsize(source) - offset)
            length = available if length is None else min(length, available)
            self._publish(path, _blocks(source, offset, length), length)
        except StoreError:
            raise
        except OSError as exc:
            raise StoreError(f"cannot read {source}: {exc.strerror}") from exc
        return length

    def _publish(self, path: str, blocks: Any, length: int) -> None:
        temporary = temporary_name(path)
        self._create(temporary, blocks, length)
        if not self._rename(temporary, path):
            # Either an earlier attempt of ours got through, or an older file: ours replaces it.
            self._namenode("DELETE", path, "DELETE", recursive="false")
            if not self._rename(temporary, path):
                raise StoreError(f"cannot rename a finished upload to {path}", True)

    def _create(self, path: str, blocks: Any, length: int) -> None:
        status, headers, body = self._namenode(
            "PUT", path, "CREATE", overwrite="true", permission="600"
        )
        if status not in (301, 302, 303, 307):
            raise StoreError(f"WebHDFS answered {status} where CREATE should redirect: {body!r}")
        self.operations += CREATE_OPERATIONS - 1
        self._send("PUT", headers.get("location", ""), blocks, length)

    def _rename(self, temporary: str, path: str) -> bool:
        destination = f"{self._root}/{path}"
        _, _, body = self._namenode("PUT", temporary, "RENAME", destination=destination)
        done = bool(_json(body).get("boolean"))
        self.files += int(done)
        return done

    def _delete_quietly(self, path: str) -> None:
        try:
            self._namenode("DELETE", path, "DELETE", recursive="false")
        except (StoreError, OSError):
            pass  # a name that readers skip; the job directory's removal takes it along

    def _namenode(
        self, method: str, path: str, operation: str, **query: str
    ) -> tuple[int, dict[str, str], bytes]:
        query["op"] = operation
        if self._user:
            query["user.name"] = self._user
        target = f"/webhdfs/v1{quote(f'{self._root}/{path}')}?{urlencode(query)}"
        failure: StoreError | None = None
        for url in list(self._urls):
            self.operations += 1
            try:
                answer = self._send(method, url + target)
            except _StandbyError as exc:
                failure = exc
                continue
            if url != self._urls[0]:
                self._urls.remove(url)
                self._urls.insert(0, url)
            return answer
        assert failure is not None
        raise failure

    def _send(
        self,
        method: str,
        url: str,
        blocks: Any = None,
        length: int = 0,
        limit: int = MAX_ANSWER_BYTES,
    ) -> tuple[int, dict[str, str], bytes]:
        """One request, never following a redirect."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise StoreError(f"WebHDFS sent us to {url[:200]!r}, which is not an http address")
        connection = _connection(parts.scheme, parts.hostname, parts.port, self._timeout)
        headers = {"Content-Type": "application/octet-stream", "Content-Length": str(length)}
        try:
            connection.request(
                method,
                f"{parts.path}?{parts.query}",
                body=blocks,
                headers=headers if method == "PUT" else {},
            )
            answer = connection.getresponse()
            body = answer.read(limit)
        except (OSError, http.client.HTTPException) as exc:
            what = "no answer in time" if isinstance(exc, socket.timeout) else str(exc)
            raise _StandbyError(f"WebHDFS at {parts.netloc}: {what}", True) from exc
        finally:
            connection.close()
        if answer.status >= 400:
            raise _refusal(answer.status, body, parts.path)
        return answer.status, {k.lower(): v for k, v in answer.getheaders()}, body


def _connection(
    scheme: str, host: str, port: int | None, timeout: float
) -> http.client.HTTPConnection:
    if scheme == "https":
        context = ssl.create_default_context()
        return http.client.HTTPSConnection(host, port, timeout=timeout, context=context)
    return http.client.HTTPConnection(host, port, timeout=timeout)


def _blocks(source: str, offset: int, length: int) -> Iterator[bytes]:
    with open(source, "rb") as file:
        file.seek(offset)
        while length > 0:
            block = file.read(min(COPY_BYTES, length))
            if not block:
                raise StoreError(f"{source} became shorter while it was saved")
            length -= len(block)
            yield block


def _json(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _refusal(status: int, body: bytes, path: str) -> Exception:
    remote = _json(body).get("RemoteException") or {}
    name = str(remote.get("exception", ""))
    message = str(remote.get("message", "")).splitlines()
    sentence = message[0][:300] if message else f"status {status}"
    if name == "FileNotFoundException":
        return FileNotFoundError(path)
    text = f"HDFS refused {path[len('/webhdfs/v1') :]}: {sentence}"
    if name == "StandbyException":
        return _StandbyError(text, True)
    lasting = name in _LASTING if name else status in _LASTING_STATUS
    return StoreError(text, transient=not lasting)
