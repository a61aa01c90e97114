"""Who may call a handler, and how every handler reads its request and says what is wrong.

``guarded`` is the one way to make a method reachable; ``scripts/check_handlers.py`` looks for its
mark. Does not answer any question about jobs.
"""

from __future__ import annotations

import functools
import json
import weakref
from collections.abc import Callable, Coroutine
from http import HTTPStatus
from typing import Any, TypeVar, cast

from jupyter_server.auth.decorator import authorized
from jupyter_server.base.handlers import APIHandler, JupyterHandler
from tornado.web import HTTPError, authenticated, stream_request_body

from submarine_jobs.text import one_line
from submarine_runtime.protocol import layout
from submarine_server.base.errors import ApiError, api_error
from submarine_server.base.origin import refusal
from submarine_server.service import Core

#: What authorizers are asked about.
RESOURCE = "submarine"
#: Bytes that a request may bring; ours are a few words of JSON.
MAX_BODY = 64 << 10
MAX_TEXT = 400

#: All that ``guarded`` made.
_guarded: weakref.WeakSet[Any] = weakref.WeakSet()

Method = Callable[..., Coroutine[Any, Any, Any]]
M = TypeVar("M", bound=Method)


def guarded(action: str, *, page: bool = False) -> Callable[[M], M]:
    """Make a handler's method reachable: authenticated, authorised, from an own page only.

    Parameters
    ----------
    action
        What the authorizer is asked about the resource ``submarine``: ``read write execute``.
    page
        A person visits it: who is not logged in is sent to the login page.
    """

    def decorate(method: M) -> M:
        checked: Method = authorized(action, RESOURCE)(method)

        @functools.wraps(method)
        async def inner(self: JupyterHandler, *args: Any, **kwargs: Any) -> Any:
            if not self.current_user:
                if page and self.request.headers.get("Upgrade", "").lower() != "websocket":
                    return authenticated(_nothing)(self)
                raise ApiError(403, "You are not logged in to this server.", "Log in first.")
            why_not = refusal(self)
            if why_not:
                raise ApiError(
                    403, f"{why_not}.", "See allow_origin in docs/server.md.", "cross_origin"
                )
            return await checked(self, *args, **kwargs)

        inner.__guarded__ = (action, RESOURCE)  # type: ignore[attr-defined]
        _guarded.add(inner)
        return cast("M", inner)

    return decorate


def is_guarded(method: object) -> bool:
    """Whether ``guarded`` made this very function; a mark alone may have been copied."""
    return method in _guarded


def _nothing(_: JupyterHandler) -> None:
    return None


def core_of(handler: JupyterHandler) -> Core:
    """The server's ``Core``."""
    return cast("Core", handler.settings["submarine_core"])


def checked_job_id(text: str) -> str:
    """``text``, if it has the form of a job id; no path is made of anything else."""
    if not layout.is_job_id(text) or not text.isprintable():
        raise ApiError(
            404,
            f"{one_line(text, 80)!r} is not a job id.",
            "One looks like digits-20261120-7f3a.",
        )
    return text


@stream_request_body
class BaseHandler(APIHandler):
    """Base of all REST handlers: JSON in, JSON out, errors as ``IErrorBody``."""

    def initialize(self) -> None:
        """Per request."""
        self._body = bytearray()

    @property
    def core(self) -> Core:
        """The server's ``Core``."""
        return core_of(self)

    @property
    def content_security_policy(self) -> str:
        """Nothing in an answer may run, load or be framed by others."""
        return f"{super().content_security_policy}; sandbox"

    def set_default_headers(self) -> None:
        """No guessing of types, no copies kept by browsers or proxies."""
        super().set_default_headers()
        self.set_header("X-Content-Type-Options", "nosniff")
        self.set_header("Cache-Control", "no-store")
        self.set_header("Cross-Origin-Resource-Policy", "same-origin")

    async def prepare(self, *, _redirect_to_login: bool = False) -> None:
        """Refuse a body that is too large before it is read."""
        announced = self.request.headers.get("Content-Length", "0")
        if not announced.isdecimal() or int(announced) > MAX_BODY:
            raise ApiError(413, f"A request here holds at most {MAX_BODY} bytes.")
        await super().prepare()

    def data_received(self, chunk: bytes) -> None:
        """Collect the body, up to the limit."""
        if len(self._body) + len(chunk) > MAX_BODY:
            raise ApiError(413, f"A request here holds at most {MAX_BODY} bytes.")
        self._body += chunk

    def body(self) -> dict[str, Any]:
        """The request's JSON object; empty where there is none."""
        if not self._body.strip():
            return {}
        try:
            value = json.loads(bytes(self._body))
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            raise ApiError(400, "The body of the request is not a JSON object.")
        return value

    def text_in(self, body: dict[str, Any], name: str, most: int = MAX_TEXT) -> str:
        """A text of the body; empty where it is not given."""
        value = body.get(name, "")
        if not isinstance(value, str) or len(value) > most:
            raise ApiError(400, f"{name} must be a text of at most {most} characters.")
        return value

    def flag_in(self, body: dict[str, Any], name: str) -> bool:
        """A truth value of the body; false where it is not given."""
        value = body.get(name, False)
        if not isinstance(value, bool):
            raise ApiError(400, f"{name} must be true or false.")
        return value

    def query(self, name: str, default: str = "", most: int = MAX_TEXT) -> str:
        """A parameter of the address as text."""
        value = self.get_query_argument(name, default, strip=False)
        if len(value) > most:
            raise ApiError(400, f"{name} may have at most {most} characters.")
        return value

    def number(self, name: str, default: int, least: int, most: int) -> int:
        """A parameter of the address as a whole number within bounds."""
        text = self.query(name, str(default), 24)
        try:
            value = int(text) if text.isascii() else None
        except ValueError:
            value = None
        if value is None or not least <= value <= most:
            raise ApiError(
                400, f"{name}={one_line(text, 24)} is no whole number from {least} to {most}."
            )
        return value

    def answer(self, value: Any, status: int = 200) -> None:
        """Finish with JSON."""
        self.set_status(status)
        self.finish(json.dumps(value, allow_nan=False, separators=(",", ":")))

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Say what is wrong as ``IErrorBody``; nothing of the request is repeated."""
        error = kwargs.get("exc_info", (None, None, None))[1]
        found = api_error(error) if error is not None else None
        if found is None:
            text = "The server has failed; its log says more."
            if isinstance(error, HTTPError) or error is None:
                text = f"{HTTPStatus(status_code).phrase}."
            found = ApiError(status_code, text)
        self.set_status(found.status_code)
        self.finish(json.dumps(found.body()))

    def log_exception(self, typ: Any, value: Any, tb: Any) -> None:
        """Log faults of ours whole, and what was foreseen in one short line."""
        found = api_error(value) if value is not None else None
        if found is not None:
            self.log.debug("submarine: %d %s", found.status_code, found.error)
            return
        super().log_exception(typ, value, tb)
