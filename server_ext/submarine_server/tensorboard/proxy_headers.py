"""What passes between a browser and TensorBoard: named headers only, no credentials, in no way.

Everything else is left out, so a header that nobody has thought of does not pass either.
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
#: Of the query: how jupyter-server takes a token, and what a hub adds on the way back from it.
_SECRET = ("token", "code", "state", "_xsrf")
#: TensorBoard's own, for a page of a plug-in that sends none.
_POLICY = (
    "default-src 'self'; font-src 'self' data:; img-src 'self' data: blob:; object-src 'none'; "
    "style-src 'self' 'unsafe-inline' data:; connect-src 'self'; script-src 'self' 'unsafe-eval'"
)
_FRAMED = "frame-ancestors 'self'; form-action 'self'; base-uri 'self'"
#: Whatever else is asked for by its address alone runs nothing: it may come from a job.
_INERT = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src 'self' data:"
_SCRIPTS = ("text/javascript", "application/javascript", "application/wasm", "text/css")
_BODY = re.compile(rb"<body[^>]*>", re.IGNORECASE)


def backend_headers(headers: Mapping[str, str], *, plain: bool) -> dict[str, str]:
    """What of a browser's headers TensorBoard gets.

    Parameters
    ----------
    plain
        The answer is to be changed on the way, so it must not be compressed.
    """
    kept = {
        name: value
        for name, value in headers.items()
        if name.lower() in _TO_BACKEND or name.lower().startswith(_PREFIX_TO_BACKEND)
    }
    packed = not plain and "gzip" in headers.get("Accept-Encoding", "")
    return {**kept, "Accept-Encoding": "gzip" if packed else "identity"}


def clean_query(query: str) -> str:
    """A query without what logs a browser in."""
    pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=1000)
    return urlencode([(name, value) for name, value in pairs if name.lower() not in _SECRET])


def backend_path(path: str) -> str:
    """A path that was unquoted, quoted again so that nothing in it is taken for a query."""
    return "/" + quote(path.lstrip("/"), safe="/:@!$&'()*+,;=-._~")


def browser_headers(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """What of TensorBoard's headers the browser gets, with the policies that hold here."""
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
    """TensorBoard's page with fonts that are found below a prefix, and what is to be known."""
    body = body.replace(b"url(/font-roboto/", b"url(font-roboto/")
    said = " ".join(notices)
    start = _BODY.search(body)
    if not said or start is None:
        return body
    bar = (
        '<div role="status" style="position:fixed;bottom:0;left:0;right:0;z-index:9999;'
        "padding:4px 12px;font:13px sans-serif;background:#fff4ce;color:#333;"
        f'border-top:1px solid #d8c27a">{escape_html(said, 2000)}</div>'
    )
    return body[: start.end()] + bar.encode() + body[start.end() :]
