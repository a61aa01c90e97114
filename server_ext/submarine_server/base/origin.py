"""Which page may call: the server's own origin, exactly, or one that the server's owner allows.

Does not authenticate. jupyter-server compares the host alone and lets a missing scheme pass; here
scheme, host and port count.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from jupyter_server.base.handlers import JupyterHandler

_PORTS = {"http": 80, "https": 443}
_SAFE = ("GET", "HEAD", "OPTIONS")
Origin = tuple[str, str, int]


def parse_origin(text: str) -> Origin | None:
    """Scheme, host and port of an ``Origin`` header; None for ``null`` and all that is none."""
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


def own_origin(protocol: str, headers: Mapping[str, str]) -> Origin | None:
    """The server's origin, as the browser that sent ``headers`` sees it.

    A proxy that ends TLS says so in ``X-Forwarded-Proto``. No page can set that header, nor
    ``Host``, in a request that another origin's server lets it send.
    """
    forwarded = headers.get("X-Forwarded-Proto", "").split(",")[0].strip().lower()
    scheme = forwarded if forwarded in _PORTS else protocol.lower()
    return parse_origin(f"{scheme}://{headers.get('Host', '')}")


def explicitly_allowed(handler: JupyterHandler, origin: str) -> bool:
    """Whether ``ServerApp.allow_origin`` or ``allow_origin_pat`` names this origin, whole."""
    allowed = handler.allow_origin
    if allowed:
        return allowed == "*" or allowed.rstrip("/").lower() == origin.lower()
    pattern = handler.allow_origin_pat
    return bool(pattern) and re.fullmatch(str(pattern), origin.lower()) is not None


def refusal(handler: JupyterHandler) -> str:
    """Why this request may not come from the page that it comes from; empty: it may."""
    headers = handler.request.headers
    upgrade = headers.get("Upgrade", "").lower() == "websocket"
    sent = headers.get("Origin", headers.get("Sec-WebSocket-Origin"))
    if sent is not None:
        if explicitly_allowed(handler, sent):
            return ""
        here = own_origin(handler.request.protocol, headers)
        if here is None or parse_origin(sent) != here:
            return "The request comes from a page of another origin"
    elif upgrade:
        return "A websocket must say which page opens it (Origin)"
    site = headers.get("Sec-Fetch-Site", "none")
    if site in ("same-origin", "none") or (upgrade and sent is not None):
        return ""
    visit = headers.get("Sec-Fetch-Mode") == "navigate" and (
        headers.get("Sec-Fetch-Dest") == "document"
    )
    if handler.request.method in _SAFE and visit:
        return ""  # somebody followed a link to us
    return "The request comes from a page of another site"
