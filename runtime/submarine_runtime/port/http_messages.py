"""HTTP messages of a job's port: request heads, token, bounded bodies, responses."""

from __future__ import annotations

import hmac
import json
import socket
from typing import Any, Mapping, NamedTuple

from submarine_runtime.port.tls_channel import TlsChannel

#: Bytes of a request's line and headers, and number of its headers.
MAX_HEAD, MAX_HEADERS = 8192, 100
MAX_BODY = 4096
_PHRASES = {
    101: "Switching Protocols",
    200: "OK",
    202: "Accepted",
    400: "Bad Request",
    401: "Unauthorized",
    404: "Not Found",
    409: "Conflict",
    411: "Length Required",
    413: "Content Too Large",
    414: "URI Too Long",
    426: "Upgrade Required",
    431: "Request Header Fields Too Large",
    501: "Not Implemented",
    502: "Bad Gateway",
    503: "Service Unavailable",
}


class RefusedError(Exception):
    """A request is answered with an error status.

    Parameters
    ----------
    error
        A sentence for the client; empty: the response has no body.
    """

    def __init__(
        self, code: int, error: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(code, error)
        self.code = code
        self.headers = dict(headers or {})
        self.body = json.dumps({"error": error[:1000]}).encode() if error else b""


class Request(NamedTuple):
    """A client's request: its connection, still non-blocking, and the first bytes of its body."""

    channel: TlsChannel
    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes


def head_error(head: bytes) -> int:
    """Return the status for a head that is too large, complete or not; 0 if it is not.

    Raises
    ------
    ValueError
        If it begins with an empty line.
    """
    line, end, _ = head.partition(b"\r\n")
    if end and not line:
        raise ValueError("not a request")
    if len(head) > MAX_HEAD:
        return 431 if end and len(line) <= MAX_HEAD else 414
    return 431 if head.count(b"\r\n") > MAX_HEADERS else 0


def parse_request_head(head: bytes) -> tuple[str, str, dict[str, str]]:
    """Return method, target and headers (names in lower case).

    Raises
    ------
    ValueError
        If it is not an HTTP request.
    """
    lines = head.decode("latin-1").split("\r\n")
    words = lines[0].split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        raise ValueError("not a request")
    headers = {}
    for line in lines[1:]:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    return words[0], words[1], headers


def has_token(headers: Mapping[str, str], token: bytes) -> bool:
    """Return whether the request has the job's token; compares in constant time."""
    scheme, _, presented = headers.get("authorization", "").partition(" ")
    presented_bytes = presented.strip().encode("utf-8", "replace")
    return scheme.lower() == "bearer" and hmac.compare_digest(presented_bytes, token)


def read_body(request: Request, sock: socket.socket) -> dict[str, Any]:
    """Return the JSON object in the body of a request.

    Raises
    ------
    RefusedError
        If the request has no length or too long a body.
    ValueError
        If the body is not a JSON object.
    """
    length = request.headers.get("content-length", "")
    if not length.isdigit():
        raise RefusedError(411)
    if int(length) > MAX_BODY:
        raise RefusedError(413)
    body = request.body
    while len(body) < int(length):
        data = sock.recv(MAX_BODY)
        if not data:
            raise ValueError("cut off")
        body += data
    try:
        content = json.loads(body or b"{}")
    except RecursionError as exc:
        raise ValueError("too deep") from exc
    if not isinstance(content, dict):
        raise ValueError("not an object")
    return content


def response_head(code: int, headers: Mapping[str, str]) -> bytes:
    """Return status line and headers of a response."""
    lines = [f"HTTP/1.0 {code} {_PHRASES.get(code, 'Error')}"]
    lines += [f"{name}: {value}" for name, value in {"Connection": "close", **headers}.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")


def response(
    code: int,
    body: bytes = b"",
    content_type: str = "application/json",
    headers: Mapping[str, str] | None = None,
) -> bytes:
    """Return a complete response."""
    fields = {
        **(headers or {}),
        "Content-Type": content_type,
        "Content-Length": str(len(body)),
    }
    return response_head(code, fields) + body
