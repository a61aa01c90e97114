"""Base class of the REST handlers: access checks, parsing of requests, error responses.

``guarded`` is the only way to make a method reachable; ``scripts/check_handlers.py`` checks it.
"""

from __future__ import annotations

import functools
import json
import weakref
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, TypeVar, cast

from jupyter_server.auth.decorator import authorized
from jupyter_server.base.handlers import APIHandler, JupyterHandler
from tornado.httputil import HTTPFile, HTTPInputError, parse_body_arguments
from tornado.web import HTTPError, authenticated, stream_request_body

from submarine_jobs.text import one_line
from submarine_runtime.protocol import layout
from submarine_runtime.translation import _
from submarine_server.base.errors import ApiError, api_error
from submarine_server.base.origin import rejection_reason
from submarine_server.service import JobService

#: Resource name for authorizers.
RESOURCE = "submarine"
#: Maximum size of a request body; valid requests are small JSON objects.
MAX_BODY = 64 << 10
MAX_TEXT = 400

#: Functions that ``guarded`` returned.
_guarded: weakref.WeakSet[Any] = weakref.WeakSet()

JSON = "application/json"
PLAIN_TEXT = "text/plain; charset=utf-8"
NDJSON = "application/x-ndjson; charset=utf-8"


@dataclass(frozen=True)
class Answer:
    """What a method of the REST interface answers, for its OpenAPI document.

    Parameters
    ----------
    types
        Types of the JSON: one, or those of the lines of ``NDJSON``.
    body
        Type of the JSON that the method reads as a whole; None if it reads single fields.
    form
        Type of the parts of a ``multipart/form-data`` body that the method reads.
    headers
        Names of the headers that describe the data.
    request_headers
        Names of the headers that the method reads.
    """

    types: tuple[type, ...] = ()
    status: int = 200
    content_type: str = JSON
    body: type | None = None
    form: type | None = None
    headers: tuple[str, ...] = ()
    request_headers: tuple[str, ...] = ()


Method = Callable[..., Coroutine[Any, Any, Any]]
M = TypeVar("M", bound=Method)


def guarded(action: str, answer: Answer | None = None, *, page: bool = False) -> Callable[[M], M]:
    """Make a handler method reachable for authorized requests from an allowed origin.

    Parameters
    ----------
    action
        Action on the resource ``submarine`` for the authorizer: ``read write execute``.
    answer
        Description of the response of a method of the REST interface.
    page
        The address is visited by a browser: redirect to the login page if necessary.
    """

    def decorate(method: M) -> M:
        checked: Method = authorized(action, RESOURCE)(method)

        @functools.wraps(method)
        async def inner(self: JupyterHandler, *args: Any, **kwargs: Any) -> Any:
            if not self.current_user:
                if page and self.request.headers.get("Upgrade", "").lower() != "websocket":
                    return authenticated(_no_action)(self)
                raise ApiError(403, _("You are not logged in to this server."), _("Log in first."))
            reason = rejection_reason(self)
            if reason:
                raise ApiError(
                    403, f"{reason}.", _("See allow_origin in docs/server.md."), "cross_origin"
                )
            return await checked(self, *args, **kwargs)

        inner.__guarded__ = (action, RESOURCE)  # type: ignore[attr-defined]
        inner.__answer__ = answer  # type: ignore[attr-defined]
        _guarded.add(inner)
        return cast("M", inner)

    return decorate


def is_guarded(method: object) -> bool:
    """Return whether ``guarded`` returned this function; an attribute could have been copied."""
    return method in _guarded


def _no_action(_: JupyterHandler) -> None:
    return None


def service_of(handler: JupyterHandler) -> JobService:
    """Return the server's ``JobService``."""
    return cast("JobService", handler.settings["submarine_service"])


def require_job_id(text: str) -> str:
    """Return ``text`` if it is a valid job id. Paths are built from valid ids only."""
    if not layout.is_job_id(text) or not text.isprintable():
        raise ApiError(
            404,
            _("{text!r} is not a job id.").format(text=one_line(text, 80)),
            _("One looks like digits-20261120-7f3a."),
        )
    return text


@stream_request_body
class BaseHandler(APIHandler):
    """Base of all REST handlers: JSON requests and responses, errors as ``IErrorBody``."""

    def initialize(self) -> None:
        """Initialize the state of one request."""
        self._body = bytearray()
        self._received = 0

    @property
    def service(self) -> JobService:
        """The server's ``JobService``."""
        return service_of(self)

    @property
    def content_security_policy(self) -> str:
        """Forbid scripts, resources and framing for all responses."""
        return f"{super().content_security_policy}; sandbox"

    def set_default_headers(self) -> None:
        """Forbid content sniffing and caching."""
        super().set_default_headers()
        self.set_header("X-Content-Type-Options", "nosniff")
        self.set_header("Cache-Control", "no-store")
        self.set_header("Cross-Origin-Resource-Policy", "same-origin")

    @property
    def max_body(self) -> int:
        """Maximum size of the body of this request in bytes."""
        return MAX_BODY

    async def prepare(self, *, _redirect_to_login: bool = False) -> None:
        """Reject a large body before it is read."""
        announced = self.request.headers.get("Content-Length", "0")
        if not announced.isdecimal() or int(announced) > self.max_body:
            raise self._too_large()
        await super().prepare()

    def _too_large(self) -> ApiError:
        return ApiError(
            413, _("A request may have at most {max_body} bytes.").format(max_body=self.max_body)
        )

    def data_received(self, chunk: bytes) -> None:
        """Collect the body up to the limit."""
        if len(self._body) + len(chunk) > self.max_body:
            raise self._too_large()
        self._body += chunk
        self._received += len(chunk)

    def body(self) -> dict[str, Any]:
        """Return the JSON object of the request; empty if there is no body."""
        if not self._body.strip():
            return {}
        try:
            value = json.loads(bytes(self._body))
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            raise ApiError(400, _("The body of the request is not a JSON object."))
        return value

    def form(self, limits: Mapping[str, int]) -> dict[str, bytes]:
        """Return the parts of a ``multipart/form-data`` body by name.

        Parameters
        ----------
        limits
            Maximum size in bytes of each part that is allowed.
        """
        kind = self.request.headers.get("Content-Type", "")
        if not kind.lower().startswith("multipart/form-data"):
            raise ApiError(400, _("The body of the request is not multipart/form-data."))
        texts: dict[str, list[bytes]] = {}
        files: dict[str, list[HTTPFile]] = {}
        try:
            parse_body_arguments(kind, bytes(self._body), texts, files)
        except HTTPInputError:
            texts, files = {}, {}
        self._body = bytearray()
        found = [(name, part) for name, parts in texts.items() for part in parts]
        found += [(name, file["body"]) for name, parts in files.items() for file in parts]
        if not found:
            raise ApiError(400, _("The body of the request has no parts, or is damaged."))
        for name, part in found:
            if name not in limits:
                raise ApiError(
                    400,
                    _("The request has the part {name}.").format(name=one_line(name, 40)),
                    _("Allowed are {names}.").format(names=", ".join(limits)),
                )
            if len(part) > limits[name]:
                raise ApiError(
                    413,
                    _("The part {name} may have at most {limit} bytes.").format(
                        name=name, limit=limits[name]
                    ),
                )
        if len(dict(found)) < len(found):
            raise ApiError(400, _("The request has a part twice."))
        return dict(found)

    def body_text(self, body: dict[str, Any], name: str, limit: int = MAX_TEXT) -> str:
        """Return a text of the body; empty if it is missing."""
        value = body.get(name, "")
        if not isinstance(value, str) or len(value) > limit:
            raise ApiError(
                400,
                _("{name} must be a text of at most {limit} characters.").format(
                    name=name, limit=limit
                ),
            )
        return value

    def body_flag(self, body: dict[str, Any], name: str) -> bool:
        """Return a boolean of the body; false if it is missing."""
        value = body.get(name, False)
        if not isinstance(value, bool):
            raise ApiError(400, _("{name} must be true or false.").format(name=name))
        return value

    def query_text(self, name: str, default: str = "", limit: int = MAX_TEXT) -> str:
        """Return a query parameter as text."""
        value = self.get_query_argument(name, default, strip=False)
        if len(value) > limit:
            raise ApiError(
                400, _("{name} may have at most {limit} characters.").format(name=name, limit=limit)
            )
        return value

    def query_int(self, name: str, default: int, minimum: int, limit: int) -> int:
        """Return a query parameter as an integer within bounds."""
        text = self.query_text(name, str(default), 24)
        try:
            value = int(text) if text.isascii() else None
        except ValueError:
            value = None
        if value is None or not minimum <= value <= limit:
            raise ApiError(
                400,
                _("{name}={text} is not a whole number from {minimum} to {limit}.").format(
                    name=name, text=one_line(text, 24), minimum=minimum, limit=limit
                ),
            )
        return value

    def finish_json(self, value: Any, status: int = 200) -> None:
        """Finish the response with JSON."""
        self.set_status(status)
        self.finish(json.dumps(value, allow_nan=False, separators=(",", ":")))

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Respond with ``IErrorBody``. The response does not contain data of the request."""
        error = kwargs.get("exc_info", (None, None, None))[1]
        found = api_error(error) if error is not None else None
        if found is None:
            text = _("The server failed. See its log.")
            if isinstance(error, HTTPError) or error is None:
                text = f"{HTTPStatus(status_code).phrase}."
            found = ApiError(status_code, text)
        self.set_status(found.status_code)
        if not self._has_body:
            # Tornado closes the connection. Without this header a proxy, such as JupyterHub's,
            # would send the next request of a user over it, and answer 503.
            self.set_header("Connection", "close")
        self.finish(json.dumps(found.body()))

    @property
    def _has_body(self) -> bool:
        """Whether the body has been read to its end; its length may be unknown."""
        headers = self.request.headers
        announced = headers.get("Content-Length", "0")
        known = announced.isdecimal() and "Transfer-Encoding" not in headers
        return known and self._received == int(announced)

    def log_exception(self, typ: Any, value: Any, tb: Any) -> None:
        """Log unexpected errors with their traceback, and other errors in one line."""
        found = api_error(value) if value is not None else None
        if found is not None:
            self.log.debug("submarine: %d %s", found.status_code, found.error)
            return
        super().log_exception(typ, value, tb)
