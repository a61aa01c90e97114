"""HTTP requests to Azkaban: session, timeouts, safe retries, no redirects to other servers.

This module handles addresses and forms; ``client`` defines the calls. Errors of requests and
urllib3 are not shown or logged unchanged: they contain URLs with session ids.

Notes
-----
The session is sent as the parameter ``session.id``, not as a cookie: with a cookie some calls
require a token of the web pages (``validateCSRFToken``). Azkaban logs URLs, so values are sent in
the body if possible.
"""

from __future__ import annotations

import hashlib
import http.cookiejar
import logging
import re
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

import requests
import tenacity
import urllib3.exceptions

from submarine_jobs.config import make_private
from submarine_jobs.text import one_line
from submarine_runtime.files import replace_file
from submarine_runtime.translation import _
from submarine_workflows.azkaban.api.errors import (
    AzkabanError,
    NotSentError,
    SessionExpiredError,
    UnavailableError,
    UnconfirmedError,
    UnreachableError,
    as_noun,
)
from submarine_workflows.azkaban.api.replies import Reply, raise_for_error, read_reply
from submarine_workflows.azkaban.api.settings import Settings, origin_of, require_https

#: Seconds for a complete response.
RESPONSE_TIMEOUT, UPLOAD_TIMEOUT = 60.0, 600.0
ATTEMPTS = 4
RETRY_WAIT = tenacity.wait_random_exponential(multiplier=0.3, max=5)
_REDIRECTS = 3
_TEMPORARY = (502, 503, 504)
#: Seconds for a connection.
CONNECT_TIMEOUT = 10.0
MAX_REPLY = 64 << 20
_SESSION_ID = re.compile(r"(session\.id=)[^&\s\"']+")

_ID = re.compile(r"[\x21-\x7e]{1,200}")


class SessionFile:
    """Private file with the session id of one user at one server; it contains no password.

    The id is kept between commands, because Azkaban limits the number of sessions.

    Parameters
    ----------
    folder
        State directory of this machine; never on a shared file system.
    """

    def __init__(self, folder: Path, settings: Settings) -> None:
        name = hashlib.sha256(f"{settings.url}\n{settings.user}".encode()).hexdigest()[:24]
        self._path = folder / "azkaban" / f"{name}.session"

    def read(self) -> str:
        """Return the id; empty if there is none."""
        try:
            text = self._path.read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError):
            return ""
        return text if _ID.fullmatch(text) else ""

    def write(self, session: str) -> None:
        """Store the id. If the disk is full, the next command logs in again."""
        with suppress(OSError):
            make_private(self._path.parent)
            replace_file(self._path, session.encode(), mode=0o600)

    def forget(self) -> None:
        """Delete an invalid id."""
        self._path.unlink(missing_ok=True)


class Connection:
    """Requests of one user to one Azkaban server.

    Parameters
    ----------
    password
        Called when a login is needed.
    session_file
        File with the session id of earlier commands; None: log in.
    """

    def __init__(
        self,
        settings: Settings,
        password: Callable[[], str],
        session_file: SessionFile | None = None,
    ) -> None:
        self.settings = settings
        self._password = password
        self._session_file = session_file
        self._session_id = session_file.read() if session_file is not None else ""
        self._http = requests.Session()
        self._http.cookies.set_policy(http.cookiejar.DefaultCookiePolicy(allowed_domains=[]))
        self._http.headers["X-Requested-With"] = "XMLHttpRequest"
        self._http.headers["Accept"] = "application/json, text/html;q=0.5"
        self._http.auth = _no_auth  # no credentials from ~/.netrc
        if settings.ca:
            self._http.verify = settings.ca

    def get(self, path: str, what: str, **fields: object) -> Reply:
        """Send a read request; repeated if the server is temporarily unavailable."""

        def request(session: str) -> Reply:
            fields_sent = {**_texts(fields), "session.id": session}
            return self._send("GET", path, what, fields_sent, safe=True)

        return self._in_session(request)

    def change(self, path: str, what: str, query: Mapping[str, str], **fields: object) -> Reply:
        """Send a change; repeated only if nothing reached the server."""

        def request(session: str) -> Reply:
            fields_sent = {**_texts(fields), "session.id": session}
            return self._send("POST", path, what, dict(query), data=fields_sent)

        return self._in_session(request)

    def upload(self, path: str, what: str, name: str, packed: bytes, **fields: object) -> Reply:
        """Send a zip file as a multipart form; repeated only as ``change``."""

        def request(session: str) -> Reply:
            fields_sent = {"session.id": session, **_texts(fields)}
            files = {"file": (name, packed, "application/zip")}
            return self._send(
                "POST", path, what, {}, data=fields_sent, files=files, limit=UPLOAD_TIMEOUT
            )

        return self._in_session(request)

    def _in_session(self, request: Callable[[str], Reply]) -> Reply:
        """Use the saved session; a request with an expired session has had no effect."""
        if self._session_id:
            try:
                return request(self._session_id)
            except SessionExpiredError:
                self._forget()
        try:
            return request(self._login())
        except SessionExpiredError:
            self._forget()
            raise AzkabanError(
                _("Azkaban accepts the login and rejects the session that it created."),
                _("A proxy may change the address of this machine."),
            ) from None

    def _login(self) -> str:
        require_https(self.settings.url)  # also for settings from other sources
        what = _("the login of {user}").format(user=self.settings.user)
        form = {
            "action": "login",
            "username": self.settings.user,
            "password": self._password(),
        }
        try:
            reply = raise_for_error(self._send("POST", "/", what, {}, data=form, again=True), what)
        except SessionExpiredError:
            raise AzkabanError(_("Azkaban refused {what}.").format(what=what)) from None
        session = reply.get("session.id")
        if not isinstance(session, str) or not session:
            raise UnreachableError(
                _("Azkaban's answer to {what} has no session.").format(what=what)
            )
        self._session_id = session
        if self._session_file is not None:
            self._session_file.write(session)
        return session

    def _forget(self) -> None:
        self._session_id = ""
        if self._session_file is not None:
            self._session_file.forget()

    def _send(
        self,
        method: str,
        path: str,
        what: str,
        query: Mapping[str, str],
        *,
        safe: bool = False,
        again: bool = False,
        limit: float = RESPONSE_TIMEOUT,
        **body: Any,
    ) -> Reply:
        """Send a request; repeat it if ``safe``, or if ``again``: unsafe but harmless."""
        kinds = (NotSentError, UnavailableError) if safe or again else (NotSentError,)
        retry = tenacity.Retrying(
            stop=tenacity.stop_after_attempt(ATTEMPTS),
            wait=RETRY_WAIT,
            retry=tenacity.retry_if_exception_type(kinds),
            reraise=True,
        )
        for attempt in retry:
            with attempt:
                status, content, moved = self._send_once(
                    method, path, what, query, safe or again, limit, body
                )
                try:
                    return read_reply(status, content, what)
                except SessionExpiredError:
                    if moved:
                        raise self._no_such_page(moved) from None
                    raise
        raise AssertionError("tenacity ends with a result or an error")

    def _send_once(
        self,
        method: str,
        path: str,
        what: str,
        query: Mapping[str, str],
        safe: bool,
        limit: float,
        body: Mapping[str, Any],
    ) -> tuple[int, bytes, str]:
        """Return status, body, and the URL after redirects."""
        url, deadline, moved = f"{self.settings.url}{path}", time.monotonic() + limit, ""
        for _unused in range(_REDIRECTS + 1):
            with request_errors(self.settings.origin, what, safe=safe):
                answer = self._http.request(
                    method,
                    url,
                    params=dict(query),
                    timeout=(CONNECT_TIMEOUT, limit),
                    allow_redirects=False,
                    stream=True,
                    **body,
                )
                with answer:
                    content = read_limited(answer, deadline, what)
            if not answer.is_redirect:
                if answer.status_code in _TEMPORARY and safe:
                    raise UnavailableError(
                        _("Azkaban is temporarily unavailable (HTTP {status_code}).").format(
                            status_code=answer.status_code
                        )
                    )
                return answer.status_code, content, moved
            url = moved = self._redirect_target(answer, method)
            query = {}
        raise UnreachableError(_("Azkaban redirects {what} in a loop.").format(what=as_noun(what)))

    def _redirect_target(self, answer: requests.Response, method: str) -> str:
        target = urljoin(answer.url, answer.headers["location"])
        origin = origin_of(target)
        if origin == self.settings.origin and method == "GET":
            return target
        raise UnreachableError(
            _(
                "{origin} redirects requests to {origin_one_line}; session and password are "
                "not sent there."
            ).format(origin=self.settings.origin, origin_one_line=one_line(origin, 100)),
            _("If that is the right server, configure its URL."),
        )

    def _no_such_page(self, moved: str) -> UnreachableError:
        """Azkaban redirects unknown addresses to /index."""
        return UnreachableError(
            _(
                "{url} is not the URL of an Azkaban server: it redirects calls to the web page "
                "{path}."
            ).format(url=self.settings.url, path=one_line(urlsplit(moved).path, 100)),
            _("Use the base URL of its pages, such as {origin}.").format(
                origin=self.settings.origin
            ),
        )


def _texts(fields: Mapping[str, object]) -> dict[str, str]:
    return {key: str(value) for key, value in fields.items() if value is not None}


def _no_auth(request: requests.PreparedRequest) -> requests.PreparedRequest:
    return request


class _SessionIdFilter(logging.Filter):
    """Removes session ids from the URLs that urllib3 logs."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg = _SESSION_ID.sub(r"\1***", record.getMessage())
        record.args = ()
        return True


logging.getLogger("urllib3.connectionpool").addFilter(_SessionIdFilter())


@contextmanager
def request_errors(origin: str, what: str, *, safe: bool) -> Iterator[None]:
    """Convert the errors of a request to messages.

    Parameters
    ----------
    what
        Description of the request, ``the upload``.
    safe
        Whether the request changes nothing, so a broken connection is unambiguous.
    """
    try:
        yield
    except requests.exceptions.SSLError as exc:
        if not _is_untrusted_certificate(exc):
            raise UnreachableError(
                _("{origin} does not support https: {error}.").format(
                    origin=origin, error=_reason(exc)
                ),
                _("Use its https port; http:// is accepted only on this machine."),
            ) from None
        raise UnreachableError(
            _("The certificate of {origin} is not trusted: {error}.").format(
                origin=origin, error=_reason(exc)
            ),
            _("Set `ca` under [azkaban] to the certificate file of its CA."),
        ) from None
    except requests.exceptions.ConnectTimeout:
        raise NotSentError(
            _("{origin} does not answer within {connect:.0f} s.").format(
                origin=origin, connect=CONNECT_TIMEOUT
            )
        ) from None
    except requests.exceptions.ConnectionError as exc:
        if _was_not_sent(exc):
            raise NotSentError(
                _("{origin} cannot be reached: {error}.").format(origin=origin, error=_reason(exc))
            ) from None
        raise _interrupted(
            _("{origin} closed the connection during {what}: {error}").format(
                origin=origin, what=as_noun(what), error=_reason(exc)
            ),
            safe=safe,
        ) from None
    except requests.exceptions.Timeout:
        raise _interrupted(
            _("{origin} did not answer {what} in time").format(origin=origin, what=as_noun(what)),
            safe=safe,
        ) from None
    except requests.exceptions.RequestException as exc:
        raise _interrupted(
            _("{what} failed: {name}").format(what=as_noun(what), name=type(exc).__name__),
            safe=safe,
        ) from None
    except ValueError:  # requests parses the redirect URL even if it is not followed
        raise UnreachableError(
            _("{origin} answers {what} with an invalid redirect.").format(
                origin=origin, what=as_noun(what)
            )
        ) from None


def read_limited(answer: requests.Response, deadline: float, what: str) -> bytes:
    """Return the body, with a limit of size and of time."""
    parts, size = [], 0
    for part in answer.iter_content(1 << 16):
        size += len(part)
        if size > MAX_REPLY:
            raise UnreachableError(
                _("The answer to {what} is larger than {max_reply} MiB.").format(
                    what=as_noun(what), max_reply=MAX_REPLY >> 20
                )
            )
        if time.monotonic() > deadline:
            raise requests.exceptions.ReadTimeout
        parts.append(part)
    return b"".join(parts)


def _interrupted(words: str, *, safe: bool) -> UnreachableError:
    if safe:
        return UnavailableError(f"{words}.")
    return UnconfirmedError(
        _("{words}; the request may have been executed.").format(words=words),
        _("Check Azkaban's web pages."),
    )


def _was_not_sent(exc: BaseException) -> bool:
    cause: Any = exc.args[0] if exc.args else None
    reason = getattr(cause, "reason", cause)
    return isinstance(reason, urllib3.exceptions.NewConnectionError)


def _is_untrusted_certificate(exc: BaseException) -> bool:
    """Return whether a certificate is not trusted; else the server does not use TLS."""
    return any(isinstance(one, ssl.SSLCertVerificationError) for one in _causes(exc))


def _causes(exc: BaseException) -> Iterator[BaseException]:
    """Yield an error of requests and its causes, innermost last."""
    error: BaseException | None = exc
    for _unused in range(6):
        if error is None:
            return
        yield error
        inner: Any = error.args[0] if error.args else None
        found = (getattr(inner, "reason", None), error.__cause__, inner)
        error = next((one for one in found if isinstance(one, BaseException)), None)


def _reason(exc: BaseException) -> str:
    """Return the innermost error in a few words."""
    words = type(exc).__name__
    for inner in list(_causes(exc))[1:]:
        reason = getattr(inner, "verify_message", "") or getattr(inner, "strerror", "")
        words = str(reason or type(inner).__name__)
    return one_line(words, 200)
