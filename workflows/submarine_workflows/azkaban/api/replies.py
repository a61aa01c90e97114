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
from submarine_workflows.azkaban.api.errors import (
    AzkabanError,
    SessionOverError,
    UnreachableError,
    noun,
)

Reply = Mapping[str, Any]
_TAG = re.compile(r"<[^<>]{0,200}>")
_TITLE = re.compile(r"<title>([^<]{0,300})", re.IGNORECASE)
_PASSWORD_FIELD = re.compile(r"<input[^>]{0,300}type=.?password", re.IGNORECASE)
_LOGIN = ("Login error", "Incorrect Login")


def read_reply(status: int, body: bytes, what: str) -> Reply:
    """Return the JSON object of a reply, which may contain an error (``refuse_error``).

    Parameters
    ----------
    what
        Description of the request for messages: ``the upload``.

    Raises
    ------
    SessionOverError
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
            raise SessionOverError
        return value
    if status == 200 and not text:
        return {}  # the servlet does not know the call
    raise _no_json(status, text, what)


def refuse_error(reply: Reply, what: str) -> Reply:
    """Return ``reply`` unless it is an error.

    Raises
    ------
    AzkabanError
        With Azkaban's message.
    """
    words = reply.get("error")
    if words is None and str(reply.get("status", "")).lower() == "error":
        words = reply.get("message") or "no reason given"
    if words is not None:
        raise AzkabanError(f"Azkaban refused {what}: {sentence(words)}")
    return reply


def sentence(words: Any, limit: int = 1000) -> str:
    """Return a message of Azkaban in one line, without tags."""
    text = html.unescape(_TAG.sub(" ", str(words)))
    said = one_line(text, limit).strip()
    return said if said.endswith((".", "!", "?")) else f"{said}."


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
            f"Azkaban's answer to {noun(what)} has no number `{key}`: "
            f"{one_line(json.dumps(reply, default=str), 200)}"
        ) from None


def _no_json(status: int, text: str, what: str) -> Exception:
    if _PASSWORD_FIELD.search(text) or text.startswith(_LOGIN):
        return SessionOverError()
    title = _TITLE.search(text)
    shown = one_line(html.unescape(title[1] if title else _TAG.sub(" ", text[:2000])), 200)
    words = f": {shown}" if shown else ""
    if status == 404:
        return UnreachableError(f"There is no Azkaban at this address (HTTP 404{words}).")
    if status in (401, 403, 407):
        return AzkabanError(f"Azkaban refused {what} (HTTP {status}{words}).")
    if status >= 500:
        return UnreachableError(f"Azkaban failed at {noun(what)} (HTTP {status}{words}).")
    return UnreachableError(f"The answer to {noun(what)} is not Azkaban's (HTTP {status}{words}).")
