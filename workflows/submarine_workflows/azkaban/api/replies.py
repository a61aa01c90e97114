"""Parse Azkaban's replies: JSON with any content type, and several forms of errors.

Notes
-----
``createJsonResponse`` writes JSON as text/html; errors have HTTP status 200, 400, 403, 410 or 500;
a request with an expired session receives the login page; messages contain HTML tags
(``LoginAbstractAzkabanServlet``, ``ProjectManagerServlet``).
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping
from typing import Any

from submarine_jobs.text import one_line
from submarine_runtime.translation import _
from submarine_workflows.azkaban.api.errors import (
    AzkabanError,
    SessionExpiredError,
    UnreachableError,
    as_noun,
)

Reply = Mapping[str, Any]
_TAG = re.compile(r"<[^<>]{0,200}>")
_TITLE = re.compile(r"<title>([^<]{0,300})", re.IGNORECASE)
_PASSWORD_FIELD = re.compile(r"<input[^>]{0,300}type=.?password", re.IGNORECASE)
_LOGIN = ("Login error", "Incorrect Login")


def read_reply(status: int, body: bytes, what: str) -> Reply:
    """Return the JSON object of a reply, which may contain an error (``raise_for_error``).

    Parameters
    ----------
    what
        Description of the request for messages: ``the upload``.

    Raises
    ------
    SessionExpiredError
        If Azkaban requires a login.
    AzkabanError, UnreachableError
        If the reply is not a JSON object.
    """
    text = body.decode("utf-8", "replace").strip()
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict):
        if value.get("error") == "session" or value.get("action") == "login":
            raise SessionExpiredError
        return value
    if status == 200 and not text:
        return {}  # the servlet does not know the call
    raise _no_json(status, text, what)


def raise_for_error(reply: Reply, what: str) -> Reply:
    """Return ``reply`` unless it is an error.

    Raises
    ------
    AzkabanError
        With Azkaban's message.
    """
    words = reply.get("error")
    if words is None and str(reply.get("status", "")).lower() == "error":
        words = reply.get("message") or _("no reason given")
    if words is not None:
        raise AzkabanError(
            _("Azkaban refused {what}: {words}").format(what=what, words=sentence(words))
        )
    return reply


def sentence(words: Any, limit: int = 1000) -> str:
    """Return a message of Azkaban in one line, without tags."""
    text = html.unescape(_TAG.sub(" ", str(words)))
    message = one_line(text, limit).strip()
    return message if message.endswith((".", "!", "?")) else f"{message}."


def number(reply: Reply, key: str, what: str) -> int:
    """Return a whole number of a reply; Azkaban writes some of them as text.

    Raises
    ------
    UnreachableError
        If it is missing: the server is not a supported Azkaban.
    """
    try:
        return int(str(reply[key]))
    except (KeyError, ValueError):
        raise UnreachableError(
            _("Azkaban's answer to {what} has no number `{key}`: {reply}").format(
                what=as_noun(what), key=key, reply=one_line(json.dumps(reply, default=str), 200)
            )
        ) from None


def _no_json(status: int, text: str, what: str) -> Exception:
    if _PASSWORD_FIELD.search(text) or text.startswith(_LOGIN):
        return SessionExpiredError()
    title = _TITLE.search(text)
    shown = one_line(html.unescape(title[1] if title else _TAG.sub(" ", text[:2000])), 200)
    words = f": {shown}" if shown else ""
    if status == 404:
        return UnreachableError(
            _("There is no Azkaban at this address (HTTP 404{words}).").format(words=words)
        )
    if status in (401, 403, 407):
        return AzkabanError(
            _("Azkaban refused {what} (HTTP {status}{words}).").format(
                what=what, status=status, words=words
            )
        )
    if status >= 500:
        return UnreachableError(
            _("Azkaban failed at {what} (HTTP {status}{words}).").format(
                what=as_noun(what), status=status, words=words
            )
        )
    return UnreachableError(
        _("The answer to {what} is not Azkaban's (HTTP {status}{words}).").format(
            what=as_noun(what), status=status, words=words
        )
    )
