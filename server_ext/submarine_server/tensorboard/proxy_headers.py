"""Filter headers, queries and pages between the browser and TensorBoard.

Only listed headers are passed in either direction; credentials are never passed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from urllib.parse import parse_qsl, quote, urlencode

from submarine_jobs.text import escape_html

_TO_BACKEND = ("accept", "accept-language", "content-type", "range", "user-agent")
_PREFIX_TO_BACKEND = "x-tensorboard-"
_TO_BROWSER = (
    "accept-ranges",
    "cache-control",
    "content-disposition",
    "content-encoding",
    "content-range",
    "content-security-policy",
    "content-type",
    "etag",
    "expires",
    "last-modified",
)
#: Query parameters with credentials: of jupyter-server and of a hub's login.
_SECRET = ("token", "code", "state", "_xsrf")
#: TensorBoard's own policy, for pages of plug-ins that have none.
_POLICY = (
    "default-src 'self'; font-src 'self' data:; img-src 'self' data: blob:; object-src 'none'; "
    "style-src 'self' 'unsafe-inline' data:; connect-src 'self'; script-src 'self' 'unsafe-eval'"
)
_FRAMED = "frame-ancestors 'self'; form-action 'self'; base-uri 'self'"
#: Other content may come from a job: it must not run scripts.
_INERT = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src 'self' data:"
_SCRIPTS = ("text/javascript", "application/javascript", "application/wasm", "text/css")
_BODY = re.compile(rb"<body[^>]*>", re.IGNORECASE)


def backend_headers(headers: Mapping[str, str], *, plain: bool) -> dict[str, str]:
    """Return the request headers for TensorBoard.

    Parameters
    ----------
    plain
        The response will be modified and must not be compressed.
    """
    kept = {
        name: value
        for name, value in headers.items()
        if name.lower() in _TO_BACKEND or name.lower().startswith(_PREFIX_TO_BACKEND)
    }
    packed = not plain and "gzip" in headers.get("Accept-Encoding", "")
    return {**kept, "Accept-Encoding": "gzip" if packed else "identity"}


def clean_query(query: str) -> str:
    """Return a query without credentials."""
    pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=1000)
    return urlencode([(name, value) for name, value in pairs if name.lower() not in _SECRET])


def backend_path(path: str) -> str:
    """Quote a path again, so that no part of it becomes a query."""
    return "/" + quote(path.lstrip("/"), safe="/:@!$&'()*+,;=-._~")


def browser_headers(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the response headers for the browser, with security policies."""
    kept = {name: value for name, value in headers if name.lower() in _TO_BROWSER}
    lower = {name.lower(): value for name, value in kept.items()}
    kind = lower.get("content-type", "").partition(";")[0].strip().lower()
    kept = {k: v for k, v in kept.items() if k.lower() != "content-security-policy"}
    if kind == "text/html":
        own = re.sub(r"frame-ancestors[^;]*;?", "", lower.get("content-security-policy", ""))
        kept["Content-Security-Policy"] = f"{own.strip().rstrip(';') or _POLICY}; {_FRAMED}"
    elif kind not in _SCRIPTS:
        kept["Content-Security-Policy"] = _INERT
    kept["X-Content-Type-Options"] = "nosniff"
    kept["Referrer-Policy"] = "same-origin"
    kept["Cross-Origin-Resource-Policy"] = "same-origin"
    return kept


def page_body(body: bytes, notices: Iterable[str]) -> bytes:
    """Return TensorBoard's page with relative font addresses and with notices."""
    body = body.replace(b"url(/font-roboto/", b"url(font-roboto/")
    text = " ".join(notices)
    start = _BODY.search(body)
    if not text or start is None:
        return body
    bar = (
        '<div role="status" style="position:fixed;bottom:0;left:0;right:0;z-index:9999;'
        "padding:4px 12px;font:13px sans-serif;background:#fff4ce;color:#333;"
        f'border-top:1px solid #d8c27a">{escape_html(text, 2000)}</div>'
    )
    return body[: start.end()] + bar.encode() + body[start.end() :]
