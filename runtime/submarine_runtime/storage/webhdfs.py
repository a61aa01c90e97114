"""The job directory on HDFS through WebHDFS, without retries after a failure of all NameNodes.

This module follows redirects: only CREATE and OPEN have one, and the body is sent to the DataNode.
A plain RENAME returns ``false`` if the target exists: that is the exclusive publish. Absolute paths
name any file of the same HDFS.
"""

from __future__ import annotations

import http.client
import io
import os
from contextlib import ExitStack, closing, contextmanager
from typing import Any, Iterable, Iterator, Mapping, Sequence
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from submarine_runtime.cluster_http import (
    MAX_ANSWER_BYTES,
    REDIRECTS,
    Access,
    Answer,
    BadUrlError,
    HttpClient,
    NoAnswerError,
    Response,
    SignInError,
    connect,
    open_url,
)
from submarine_runtime.files import temporary_name
from submarine_runtime.kerberos import INVALID_TOKEN, namenode_access
from submarine_runtime.protocol import JobStore
from submarine_runtime.storage.store import (
    Appender,
    Entry,
    NotFoundError,
    Store,
    StoreError,
    UnauthenticatedError,
    UntrustedError,
)
from submarine_runtime.translation import _

#: Only small files are read whole: claims, requests to cancel, manifests, records.
MAX_READ_BYTES = 64 << 20
#: The NameNode operations of a create: redirect, create, addBlock and complete.
CREATE_OPERATIONS = 4
COPY_BYTES = 1 << 18
_PREFIX = "/webhdfs/v1"
_UPLOAD = {"Content-Type": "application/octet-stream"}
#: Permanent errors. Other errors may pass: after a restart, for instance, HDFS fails with a plain
#: IOException until its DataNodes have registered.
_PERMANENT = frozenset(
    {
        "AccessControlException",
        "AclException",
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
    access
        Authentication at the NameNodes, whose redirects contain that at the DataNodes.
    timeout
        Seconds that one connect, read or write on a socket may take.
    shared
        Create files below ``root`` with mode 640 and directories with 750, not 600 and 700. Below
        a default ACL the middle digit is the mask of the inherited entries, so a file with mode 600
        stays private there, and the group gets what the default ACL gives it.
    gateway
        Whether the server is an HttpFS gateway: it redirects to itself, and signs no redirect.
    plain
        Create files and directories with the modes that HDFS gives by default, as those of the
        user's own programs.
    """

    publish_cost = CREATE_OPERATIONS + 1
    label = "HDFS"

    def __init__(
        self,
        urls: Sequence[str],
        root: str,
        access: Access,
        timeout: float = 20.0,
        shared: bool = False,
        gateway: bool = False,
        plain: bool = False,
    ) -> None:
        super().__init__()
        if not urls:
            raise ValueError("a webhdfs job store needs the URL of at least one NameNode")
        self._root = root.rstrip("/")
        self._timeout = timeout
        self._ca = access.ca
        self._shared = shared
        self._gateway, self._plain = gateway, plain
        self._authentication = access.authentication
        self._http = HttpClient(
            urls, access=access, timeout=timeout, standby=_standby, on_request=self._count
        )

    @classmethod
    def of_container(cls, store: JobStore, timeout: float) -> WebHdfsStore:
        """Return the client of a job directory in a container."""
        access = namenode_access(store)
        return cls(store.webhdfs, store.path, access, timeout, store.shared, store.gateway)

    def _count(self) -> None:
        self.operations += 1

    def _full(self, path: str) -> str:
        return path if path.startswith("/") else f"{self._root}/{path}".rstrip("/")

    def _mode(self, path: str, private: str, shared: str) -> dict[str, str]:
        """Return the mode of a new file or directory; outside of the root it is private.

        Directories of ``modes`` are exceptions.
        """
        if self._plain:
            return {}
        if mode := self.mode_of(path):
            return {"permission": f"{mode & 0o666 if private == '600' else mode:o}"}
        below = self._full(path).startswith(f"{self._root}/")
        return {"permission": shared if self._shared and below else private}

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
        with self.opened(path, offset, length) as body:
            block = memoryview(bytearray(COPY_BYTES))
            while count := body.readinto(block):
                yield bytes(block[:count])

    @contextmanager
    def opened(self, path: str, offset: int, length: int | None) -> Iterator[Body]:
        """Open a range of a file, at least one byte; ``length`` None: to the end.

        Raises
        ------
        NotFoundError, StandbyError, StoreError
            As ``call``.
        """
        query = {"offset": str(offset)} if offset else {}
        if length is not None:
            query["length"] = str(length)
        if self._gateway:  # Otherwise the answer is the whole file.
            query["noredirect"] = "true"
        answer = self.call("GET", path, "OPEN", query)
        location = answer.headers.get("location", "")
        if self._gateway:
            location = str(answer.json_object().get("Location") or "")
        elif answer.status not in REDIRECTS:
            yield Body(io.BytesIO(answer.body), path)
            return
        location, headers = self._signed(location, path, {})
        with _datanode("GET", location, self._timeout, self._ca, headers=headers) as response:
            yield Body(response, path)

    def exists(self, path: str) -> bool:
        """See ``Store.exists``."""
        return self.stat(path) is not None

    def appender(self, path: str) -> Appender:
        """See ``Store.appender``: a body of unknown length.

        A DataNode completes the file with the received data if the client disconnects (tested).
        """
        return Upload(*self._signed(self._location(path), path, _UPLOAD), self._timeout, self._ca)

    def stat(self, path: str) -> Entry | None:
        """See ``Store.stat``."""
        try:
            answer = self.call("GET", path, "GETFILESTATUS")
        except NotFoundError:
            return None
        status = answer.json_object().get("FileStatus") or {}
        return _entry(status, path.rstrip("/").rpartition("/")[2])

    def entries(self, path: str) -> list[Entry]:
        """See ``Store.entries``."""
        try:
            answer = self.call("GET", path, "LISTSTATUS", limit=MAX_READ_BYTES)
        except NotFoundError:
            return []
        found = (answer.json_object().get("FileStatuses") or {}).get("FileStatus") or []
        return [_entry(status) for status in found if status.get("pathSuffix")]

    def publish_exclusive(self, path: str, data: bytes) -> bool:
        """See ``Store.publish_exclusive``."""
        temporary = temporary_name(path)
        self.create(temporary, [data], len(data))
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
            self.create(temporary, blocks, length)
        except StandbyError:
            raise  # No NameNode is available to delete it.
        except BaseException:
            self._delete_quietly(temporary)
            raise
        self.move(temporary, path)

    def move(self, path: str, to: str) -> None:
        """See ``Store.move``."""
        query = {"destination": self._full(to), "renameoptions": "OVERWRITE"}
        answer = self.call("PUT", path, "RENAME", query)
        if answer.json_object().get("boolean") is False:
            # A gateway that ignores the option: delete the old file first.
            self.delete(to)
            if not self._rename(path, to):
                raise StoreError(_("cannot rename a finished upload to {to}").format(to=to), True)
            return
        self.files += 1

    def delete(self, path: str, recursive: bool = False) -> None:
        """See ``Store.delete``."""
        query = {"recursive": "true" if recursive else "false"}
        self.call("DELETE", path, "DELETE", query)

    def make_directory(self, path: str) -> None:
        """See ``Store.make_directory``."""
        self.call("PUT", path, "MKDIRS", self._mode(path, "700", "750"))

    def create(self, path: str, blocks: Any, length: int) -> None:
        """Write a file or replace it, without a temporary name."""
        location, headers = self._signed(self._location(path), path, _UPLOAD)
        headers["Content-Length"] = str(length)
        with _datanode("PUT", location, self._timeout, self._ca, body=blocks, headers=headers):
            pass

    def _location(self, path: str) -> str:
        """Return the URL for the body of a new file."""
        query = {"overwrite": "true", **self._mode(path, "600", "640")}
        answer = self.call("PUT", path, "CREATE", query)
        if answer.status not in REDIRECTS:
            raise StoreError(
                _("WebHDFS answered {status} where CREATE should redirect: {body!r}").format(
                    status=answer.status, body=answer.body
                )
            )
        self.operations += CREATE_OPERATIONS - 1
        return answer.headers.get("location", "")

    def _signed(
        self, location: str, path: str, headers: Mapping[str, str]
    ) -> tuple[str, dict[str, str]]:
        """Return the target of a redirect and its headers; NameNodes have signed it already."""
        signed, place = dict(headers), urlsplit(self._http.url).netloc
        if not self._gateway or not location.startswith(f"{self._http.url}/"):
            return location, signed
        base, _mark, text = location.partition("?")
        query = dict(parse_qsl(text, keep_blank_values=True))
        with _errors(path):
            host = urlsplit(location).hostname or ""
            self._authentication.sign(host, place, query, signed)
        return f"{base}?{urlencode(query)}", signed

    def _rename(self, temporary: str, path: str) -> bool:
        answer = self.call("PUT", temporary, "RENAME", {"destination": self._full(path)})
        done = bool(answer.json_object().get("boolean"))
        self.files += int(done)
        return done

    def _delete_quietly(self, path: str) -> None:
        try:
            self.delete(path)
        except StoreError:
            pass  # Readers skip the name; it is removed with the job directory.

    def call(
        self,
        method: str,
        path: str,
        operation: str,
        query: Mapping[str, str] | None = None,
        limit: int = MAX_ANSWER_BYTES,
    ) -> Answer:
        """Call an operation of the NameNode; a redirect is returned.

        Raises
        ------
        NotFoundError, StandbyError, StoreError
            For an error response, or if no NameNode answers.
        """
        if method != "GET":
            self.gate()
        query = {**(query or {}), "op": operation}
        name = quote(self._full(path) or "/")
        headers = _UPLOAD if method == "PUT" else {}
        with _errors(name):
            answer = self._http.request(method, _PREFIX + name, query, headers=headers, limit=limit)
        if answer.status >= 400:
            raise _refusal(answer, name)
        return answer


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
        int(str(status.get("permission") or "0"), 8),
        bool(status.get("encBit")),
    )


class StandbyError(StoreError):
    """The NameNode is in standby or not available; the next one is tried."""


@contextmanager
def _errors(path: str) -> Iterator[None]:
    """Convert errors of the connection in a request for ``path``."""
    try:
        yield
    except SignInError as exc:
        sentence = _("WebHDFS at {place}: {what}").format(place=exc.place, what=exc)
        raise UnauthenticatedError(sentence) from exc
    except NoAnswerError as exc:
        if exc.standby is not None:
            raise _refusal(exc.standby, path) from exc
        if exc.missing:
            raise StoreError(
                _("the answer for {path} ended {expected} bytes too early").format(
                    path=path, expected=exc.missing
                ),
                True,
            ) from exc
        what = _("no answer in time") if exc.timed_out else str(exc)
        sentence = _("WebHDFS at {place}: {what}").format(place=exc.place, what=what)
        if exc.untrusted:
            raise UntrustedError(sentence) from exc
        raise StandbyError(sentence, True) from exc


@contextmanager
def _datanode(
    method: str, url: str, timeout: float, ca: str, *, body: Any = None, headers: Any = None
) -> Iterator[Response]:
    """Send one request to the target of a redirect.

    Raises
    ------
    NotFoundError, StandbyError, StoreError
        For an error response, or an error of the connection.
    """
    path = _path_in(url)
    with ExitStack() as stack:
        with _errors(path):
            try:
                opened = open_url(method, url, timeout, ca=ca, body=body, headers=headers)
                response = stack.enter_context(opened)
            except BadUrlError as exc:
                raise _no_redirect(url) from exc
            if response.status >= 400:
                raise _refusal(response.read_all(MAX_ANSWER_BYTES), path)
        yield response


class Body:
    """The bytes of a range of a file, as they arrive."""

    def __init__(self, source: Response | io.BytesIO, path: str) -> None:
        self._source, self._path = source, path

    def readinto(self, buffer: memoryview) -> int:
        """Read bytes to ``buffer``; return their number, 0 at the end.

        Raises
        ------
        StoreError
            If the connection breaks before the announced end.
        """
        with _errors(self._path):
            return self._source.readinto(buffer)


class Upload(Appender):
    """The body of a PUT, sent in chunks over one connection as data arrives."""

    def __init__(self, url: str, headers: Mapping[str, str], timeout: float, ca: str) -> None:
        try:
            self._connection, parts = connect(url, timeout, ca)
        except BadUrlError as exc:
            raise _no_redirect(url) from exc
        self._place, self._path = parts.netloc, _path_in(url)
        try:
            with self._sending():
                self._connection.putrequest("PUT", f"{parts.path}?{parts.query}")
                for name, value in headers.items():
                    self._connection.putheader(name, value)
                self._connection.putheader("Transfer-Encoding", "chunked")
                self._connection.endheaders()
        except StoreError:
            self.abort()
            raise

    def append(self, data: bytes) -> None:
        """See ``Appender.append``."""
        if data:
            with self._sending():
                self._connection.send(b"%x\r\n%s\r\n" % (len(data), data))

    def close(self) -> None:
        """See ``Appender.close``."""
        try:
            with self._sending():
                self._connection.send(b"0\r\n\r\n")
                reply = self._connection.getresponse()
            with closing(Response(reply, self._place)) as response, _errors(self._path):
                if response.status >= 400:
                    raise _refusal(response.read_all(MAX_ANSWER_BYTES), self._path)
        finally:
            self.abort()

    def abort(self) -> None:
        """See ``Appender.abort``."""
        self._connection.close()

    @contextmanager
    def _sending(self) -> Iterator[None]:
        with _errors(self._path):
            try:
                yield
            except (OSError, http.client.HTTPException) as exc:
                raise NoAnswerError(self._place, exc) from exc


def _path_in(url: str) -> str:
    """Return the path of the file that a redirect names."""
    try:
        return urlsplit(url).path[len(_PREFIX) :]
    except ValueError:
        return ""


def _no_redirect(url: str) -> StoreError:
    address = url.partition("?")[0]  # The query contains a delegation token.
    return StoreError(
        _("WebHDFS redirected to {url!r}, which is not an http address").format(url=address[:200])
    )


def _remote_exception(answer: Answer) -> dict[str, Any]:
    found = answer.json_object().get("RemoteException")
    return found if isinstance(found, dict) else {}


def _standby(answer: Answer) -> str:
    """See ``HttpClient``: a standby, or a NameNode that starts or is in safe mode."""
    remote = _remote_exception(answer) if answer.status >= 400 else {}
    name = str(remote.get("exception"))
    # A standby does not read tokens: it rejects a request with one before it rejects the operation.
    if name == "SecurityException" and str(remote.get("message")).endswith(": StandbyException"):
        return "StandbyException"
    return name if name in ("StandbyException", "RetriableException") else ""


def _refusal(answer: Answer, path: str) -> StoreError:
    status, remote = answer.status, _remote_exception(answer)
    name = str(remote.get("exception", ""))
    message = str(remote.get("message", "")).splitlines()
    sentence = message[0][:300] if message else _("status {status}").format(status=status)
    text = _("HDFS refused {path}: {sentence}").format(path=path, sentence=sentence)
    if name == "FileNotFoundException":
        return NotFoundError(text)
    if status == 401:
        return UnauthenticatedError(text)
    if _standby(answer):
        return StandbyError(text, True)
    if INVALID_TOKEN in f"{name} {sentence}":
        # A client, or the keytab of the job, may provide another one.
        return StoreError(
            _(
                "HDFS refused {path}: the delegation token has expired or was cancelled; a waiting "
                "command or the Jupyter server of a user with a ticket provides another one"
            ).format(path=path),
            True,
        )
    permanent = name in _PERMANENT if name else status in _PERMANENT_STATUS
    return StoreError(text, transient=not permanent, full=name.endswith("QuotaExceededException"))
