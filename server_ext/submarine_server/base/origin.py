"""Check the origin of a request: the server's own origin, or one that the configuration allows.

jupyter-server compares only the host and accepts a missing scheme. Here scheme, host and port must
match.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from jupyter_server.base.handlers import JupyterHandler

from submarine_runtime.translation import _

_PORTS = {"http": 80, "https": 443}
_SAFE = ("GET", "HEAD", "OPTIONS")
Origin = tuple[str, str, int]


def parse_origin(text: str) -> Origin | None:
    """Return scheme, host and port of an ``Origin`` header; None for invalid values."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return None
    scheme, host = parts.scheme.lower(), parts.hostname
    bare = f"{parts.scheme}://{parts.netloc}".lower() == text.lower()
    if scheme not in _PORTS or not host or not bare or "@" in parts.netloc:
        return None
    return scheme, host, _PORTS[scheme] if port is None else port


def server_origin(protocol: str, headers: Mapping[str, str]) -> Origin | None:
    """Return the server's origin as seen by the browser that sent ``headers``.

    A proxy that terminates TLS sets ``X-Forwarded-Proto``. A page of another origin can set neither
    this header nor ``Host``.
    """
    forwarded = headers.get("X-Forwarded-Proto", "").split(",")[0].strip().lower()
    scheme = forwarded if forwarded in _PORTS else protocol.lower()
    return parse_origin(f"{scheme}://{headers.get('Host', '')}")


def explicitly_allowed(handler: JupyterHandler, origin: str) -> bool:
    """Return whether ``allow_origin`` or ``allow_origin_pat`` matches the whole origin."""
    allowed = handler.allow_origin
    if allowed:
        return allowed == "*" or allowed.rstrip("/").lower() == origin.lower()
    pattern = handler.allow_origin_pat
    return bool(pattern) and re.fullmatch(str(pattern), origin.lower()) is not None


def rejection_reason(handler: JupyterHandler) -> str:
    """Return why the origin of a request is not allowed; empty if it is."""
    headers = handler.request.headers
    upgrade = headers.get("Upgrade", "").lower() == "websocket"
    sent = headers.get("Origin", headers.get("Sec-WebSocket-Origin"))
    if sent is not None:
        if explicitly_allowed(handler, sent):
            return ""
        server = server_origin(handler.request.protocol, headers)
        if server is None or parse_origin(sent) != server:
            return _("The request comes from a page of another origin")
    elif upgrade:
        return _("A websocket request needs the header Origin")
    site = headers.get("Sec-Fetch-Site", "none")
    if site in ("same-origin", "none") or (upgrade and sent is not None):
        return ""
    visit = headers.get("Sec-Fetch-Mode") == "navigate" and (
        headers.get("Sec-Fetch-Dest") == "document"
    )
    if handler.request.method in _SAFE and visit:
        return ""  # a link from another page
    return _("The request comes from a page of another site")
