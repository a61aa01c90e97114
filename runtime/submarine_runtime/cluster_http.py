"""HTTP client of the cluster's interfaces: WebHDFS, ResourceManager, NodeManager, history server.

This module is the only place for TLS, timeouts, failover and limits of responses, and the place
where requests are authenticated, in containers and on the notebook's side; ``kerberos`` implements
the authentication of secure clusters. Proxy variables are ignored. Paths and the meaning of
responses belong to the modules that use it. The port of a job is not one of these interfaces.
"""

from __future__ import annotations

import functools
import http.client
import json
import socket
import ssl
import sys
import threading
import time
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Callable, ContextManager, Iterator, Mapping, Sequence, TypeVar
from urllib.parse import SplitResult, urlencode, urlsplit

from submarine_runtime.translation import _

#: Default of the maximum size of a response that is read as a whole, in bytes.
MAX_ANSWER_BYTES = 1 << 20
REDIRECTS = frozenset({301, 302, 303, 307})
_BLOCK_BYTES = 1 << 18
#: Most bytes of a body that are read at once: the receive buffer grows between the reads.
_PART_BYTES = 1 << 19
#: Most bytes that are awaited at once, and bytes that http.client may have in its buffer.
_AWAITED_BYTES, _BUFFERED_BYTES = 1 << 18, 1 << 16
T = TypeVar("T")


class BadUrlError(ValueError):
    """A URL is not an http or https address."""


class NoAnswerError(Exception):
    """No complete response: no connection, a timeout, a broken or too long response, a standby.

    Attributes
    ----------
    place
        ``host:port`` of the server, or several.
    timed_out
        Whether the time limit is the reason.
    untrusted
        Whether the certificate of the server is not accepted.
    missing
        Number of bytes that an incomplete body lacks, if known.
    too_long
        Whether the response is longer than the limit.
    standby
        The response of a standby; None: there is no response.
    """

    def __init__(self, place: str, reason: object, standby: Answer | None = None) -> None:
        super().__init__(str(reason) or type(reason).__name__)
        self.place, self.standby = place, standby
        self.timed_out = isinstance(reason, socket.timeout)
        self.untrusted = isinstance(reason, ssl.SSLCertVerificationError)
        self.too_long = isinstance(reason, _TooLongError)
        broken = isinstance(reason, http.client.IncompleteRead)
        self.missing: int = getattr(reason, "expected", None) or 0 if broken else 0


class _TooLongError(Exception):
    """Reason of a ``NoAnswerError``: the response is longer than the limit."""


class SignInError(NoAnswerError):
    """A request was not sent, because its authentication failed."""


class Authentication:
    """Adds the authentication to requests; this base class sends none. Several threads use one.

    Attributes
    ----------
    in_containers, token_interval
        ``JobStore.authentication`` and ``JobStore.token_interval`` of the jobs of such a client.
    """

    in_containers = "simple"
    token_interval = 0.0

    def sign(self, host: str, place: str, query: dict[str, str], headers: dict[str, str]) -> None:
        """Add what authenticates a request.

        Parameters
        ----------
        host
            Name of the server's host.
        place
            ``host:port`` of the server.

        Raises
        ------
        SignInError
            If there is no valid ticket or token.
        """

    def answered(self, place: str, answer: Answer) -> bool:
        """Handle a response; return whether a second attempt has another authentication."""
        return False


class SimpleUser(Authentication):
    """Simple authentication: the name of the user, without a proof."""

    def __init__(self, user: str) -> None:
        self.user = user

    def sign(self, host: str, place: str, query: dict[str, str], headers: dict[str, str]) -> None:
        """See ``Authentication.sign``."""
        query["user.name"] = self.user


@dataclass(frozen=True)
class Access:
    """How a process signs in to an interface of the cluster.

    Parameters
    ----------
    ca
        Certificates of the authorities that sign those of the servers, in PEM; empty: those of the
        system.
    """

    authentication: Authentication = field(default_factory=Authentication)
    ca: str = ""


#: Access without a user.
ANONYMOUS = Access()


def simple_access(user: str | None) -> Access:
    """Return the access of a user with simple authentication; empty or None: anonymous."""
    return Access(SimpleUser(user)) if user else ANONYMOUS


@dataclass(frozen=True)
class Answer:
    """A whole response; names of ``headers`` are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """Return the JSON of the body.

        Raises
        ------
        ValueError
            If the body is not JSON, or too deeply nested.
        """
        try:
            return json.loads(self.body)
        except RecursionError as exc:
            raise ValueError("the JSON is nested too deeply") from exc

    def json_object(self) -> dict[str, Any]:
        """Return the JSON object of the body; an empty one for anything else."""
        try:
            value = self.json()
        except ValueError:
            return {}
        return value if isinstance(value, dict) else {}


class Response:
    """A status, headers in lower case, and a body that is read on demand."""

    def __init__(
        self, response: http.client.HTTPResponse, place: str, sock: socket.socket | None = None
    ) -> None:
        self._response, self._place = response, place
        self._socket = None if isinstance(sock, ssl.SSLSocket) else sock
        self._awaited = 1
        self.status = response.status
        self.headers = {key.lower(): value for key, value in response.getheaders()}

    @property
    def closes(self) -> bool:
        """Whether the server closes the connection after this response."""
        return bool(self._response.will_close)

    def read(self, size: int) -> bytes:
        """Return at most ``size`` bytes of the body; empty at its end.

        Raises
        ------
        NoAnswerError
            If the connection breaks before ``Content-Length`` bytes have arrived.
        """
        return self._complete(lambda: self._response.read(size))

    def readinto(self, buffer: memoryview) -> int:
        """Read bytes of the body to ``buffer``; return their number, 0 at its end.

        Raises
        ------
        NoAnswerError
            As ``read``.
        """
        self._await_many()
        part = buffer[:_PART_BYTES]
        return self._complete(lambda: self._response.readinto(part))

    def _await_many(self) -> None:
        """Have the kernel wake this thread for many bytes instead of for each packet.

        1 GB took 0.4 instead of 1.2 s of CPU. The thread would never be woken for more bytes than
        the body has left after the next part, or than fit into the receive buffer, which old
        kernels do not enlarge for this.
        """
        if self._socket is None or self._response.isclosed() or sys.platform != "linux":
            return
        fitting = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) // 8
        left = (self._response.length or 0) - _PART_BYTES - _BUFFERED_BYTES
        awaited = max(1, min(_AWAITED_BYTES, fitting, left))
        if awaited != self._awaited:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, awaited)
            self._awaited = awaited

    def _complete(self, read: Callable[[], T]) -> T:
        try:
            found = read()
            # http.client detects an early end only if a body is read without a limit.
            if not found and self._response.length:
                raise http.client.IncompleteRead(b"", self._response.length)
        except (OSError, http.client.HTTPException) as exc:
            raise NoAnswerError(self._place, exc) from exc
        return found

    def read_all(self, limit: int, deadline: float = float("inf")) -> Answer:
        """Return the whole response.

        Parameters
        ----------
        limit
            Maximum size of the body in bytes.
        deadline
            ``time.monotonic()`` at which reading ends.

        Raises
        ------
        NoAnswerError
            If the body is longer, incomplete, or late.
        """
        body = bytearray()
        while block := self.read(_BLOCK_BYTES):
            body += block
            if len(body) > limit:
                reason = _("the answer is longer than {limit} MB").format(limit=limit >> 20)
                raise NoAnswerError(self._place, _TooLongError(reason))
            if time.monotonic() > deadline:
                raise NoAnswerError(self._place, socket.timeout("timed out"))
        return Answer(self.status, self.headers, bytes(body))

    def close(self) -> None:
        """Close the response; the connection's own ``close`` leaves the socket open until then."""
        self._response.close()


def connect(
    url: str, timeout: float, ca: str = ""
) -> tuple[http.client.HTTPConnection, SplitResult]:
    """Return a connection for ``url``, which opens at its first request, and the parts of ``url``.

    Parameters
    ----------
    timeout
        Seconds for each socket operation.
    ca
        See ``Access``.

    Raises
    ------
    BadUrlError
        If ``url`` is not an http or https address, or ``ca`` contains no certificate.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as exc:
        raise BadUrlError(str(exc)) from exc
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise BadUrlError(_("{url!r} is not an http address").format(url=url[:200]))
    if parts.scheme == "https":
        return http.client.HTTPSConnection(
            parts.hostname, port, timeout=timeout, context=_tls(ca)
        ), parts
    return http.client.HTTPConnection(parts.hostname, port, timeout=timeout), parts


@functools.lru_cache(maxsize=8)
def _tls(ca: str) -> ssl.SSLContext:
    """Return the TLS settings of a client; reading the system's certificates takes 20 ms."""
    try:
        return ssl.create_default_context(cadata=ca or None)
    except (ssl.SSLError, ValueError) as exc:
        raise BadUrlError(
            _("the certificates of the authorities are not PEM: {error}").format(error=exc)
        ) from exc


@contextmanager
def open_url(
    method: str,
    url: str,
    timeout: float,
    *,
    ca: str = "",
    body: Any = None,
    headers: Mapping[str, str] | None = None,
) -> Iterator[Response]:
    """Send one request to a complete URL; the connection is closed at the end of the block.

    The URL has its authentication already, as that of a redirect by a NameNode has.

    Parameters
    ----------
    timeout
        Seconds for each socket operation.
    ca
        See ``Access``.
    body
        Bytes or an iterable of bytes; None: no body.

    Raises
    ------
    NoAnswerError
        If there is no response.
    BadUrlError
        If ``url`` is not an http or https address.
    """
    connection, parts = connect(url, timeout, ca)
    target = parts.path + (f"?{parts.query}" if parts.query else "")
    with closing(connection), _send(
        connection, parts.netloc, method, target or "/", body, headers or {}
    ) as response:
        yield response


@contextmanager
def _send(
    connection: http.client.HTTPConnection,
    place: str,
    method: str,
    target: str,
    body: Any,
    headers: Mapping[str, str],
) -> Iterator[Response]:
    try:
        connection.request(method, target, body=body, headers=dict(headers))
        sock = connection.sock
        reply = connection.getresponse()
    except (OSError, http.client.HTTPException, UnicodeError) as exc:
        raise NoAnswerError(place, exc) from exc
    with closing(Response(reply, place, sock)) as response:
        yield response


class HttpClient:
    """One interface of the cluster, with one or more servers of which one is active.

    Parameters
    ----------
    urls
        Base URLs, ``http://host:port``; the server that answered last is tried first.
    access
        Authentication and certificates.
    timeout
        Seconds for each server.
    deadline
        Seconds for a request to all servers together, shared by those that are left; None: no such
        limit.
    standby
        Returns why a response is that of a standby; empty: it is not.
    keep_alive
        Keep the connection. Requests of several threads then wait for each other, and the first
        server is tried again after all others, because its kept connection may have been closed.
    on_request
        Called before each request to a server.

    Attributes
    ----------
    calls
        Number of requests to servers.
    """

    def __init__(
        self,
        urls: Sequence[str],
        *,
        access: Access = ANONYMOUS,
        timeout: float,
        deadline: float | None = None,
        standby: Callable[[Answer], str] = lambda answer: "",
        keep_alive: bool = False,
        on_request: Callable[[], object] = lambda: None,
    ) -> None:
        self._urls = [url.rstrip("/") for url in urls]
        self._access = access
        self._timeout, self._deadline = timeout, deadline
        self._standby, self._keep_alive, self._on_request = standby, keep_alive, on_request
        self._active = 0
        self._lock: ContextManager[Any] = threading.Lock() if keep_alive else nullcontext()
        self.calls = 0

    _connection: tuple[str, http.client.HTTPConnection] | None = None

    def __del__(self) -> None:
        self._drop()

    @property
    def url(self) -> str:
        """Base URL of the server that answered last."""
        return self._urls[self._active]

    @property
    def urls(self) -> Sequence[str]:
        """Base URLs of all servers."""
        return self._urls

    def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        *,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        limit: int = MAX_ANSWER_BYTES,
    ) -> Answer:
        """Send a request to the active server; on failure to the others.

        The request may be repeated after a lost response.

        Parameters
        ----------
        path
            Path below the base URL, with quoted special characters.
        limit
            Maximum size of the response's body in bytes.

        Raises
        ------
        NoAnswerError
            The failure of the server that was tried last. A response above the limit is not
            requested again.
        """
        query, headers = query or {}, headers or {}
        end = time.monotonic() + self._deadline if self._deadline is not None else float("inf")
        failure = NoAnswerError("", _("no address is configured"))
        with self._lock:
            attempts = len(self._urls) + int(self._keep_alive)
            for number in range(1, attempts + 1):
                if not self._urls or time.monotonic() >= end:
                    break
                url, now = self.url, time.monotonic()
                # A server that hangs leaves time for those that were not tried.
                until = now + (end - now) / max(1, len(self._urls) - number + 1)
                try:
                    others = number < len(self._urls)
                    request = (url, method, path, query, body, headers, limit, until)
                    answer = self._ask(*request, others=others)
                    standby = self._standby(answer)
                    if not standby:
                        return answer
                    failure = NoAnswerError(urlsplit(url).netloc, standby, answer)
                except NoAnswerError as exc:
                    failure = exc
                    self._drop()
                    if exc.too_long:
                        break  # Another server would send as much again.
                # Without a lock, another thread may have changed the active one already.
                if number < attempts and self.url == url:
                    self._active = (self._active + 1) % len(self._urls)
        raise failure

    def _ask(
        self,
        url: str,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: bytes | None,
        headers: Mapping[str, str],
        limit: int,
        end: float,
        *,
        others: bool,
    ) -> Answer:
        """Send a signed request; once more if the server rejects an earlier sign-in.

        Parameters
        ----------
        others
            Whether other servers have not been tried yet.
        """
        for last in (False, True):
            try:
                connection, parts = self._connect(
                    url, max(0.001, min(self._timeout, end - time.monotonic()))
                )
            except BadUrlError as exc:
                raise NoAnswerError(url, exc) from exc
            signed, more = dict(query), dict(headers)
            place, authentication = parts.netloc, self._access.authentication
            authentication.sign(parts.hostname or "", place, signed, more)
            self.calls += 1
            self._on_request()
            target = parts.path + path + (f"?{urlencode(signed)}" if signed else "")
            try:
                with _send(connection, place, method, target, body, more) as response:
                    answer = response.read_all(limit, end)
                if response.closes:
                    self._drop()
            finally:
                if not self._keep_alive:
                    connection.close()
            # Standbys reject valid tokens: ask the others before a token is given up.
            if others and self._standby(answer):
                break
            if not authentication.answered(place, answer) or last:
                break
        return answer

    def _connect(self, url: str, timeout: float) -> tuple[http.client.HTTPConnection, SplitResult]:
        if self._connection is not None and self._connection[0] == url:
            connection = self._connection[1]
            if connection.sock is not None:
                connection.sock.settimeout(timeout)
            return connection, urlsplit(url)
        self._drop()
        connection, parts = connect(url, timeout, self._access.ca)
        if self._keep_alive:
            self._connection = url, connection
        return connection, parts

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection[1].close()
            self._connection = None
