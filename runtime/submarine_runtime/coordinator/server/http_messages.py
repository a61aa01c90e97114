"""HTTP messages of the coordinator's port: request heads, token, bounded bodies, responses."""

from __future__ import annotations

import hmac
import json
import socket
from typing import Any, Mapping, NamedTuple

from submarine_runtime.coordinator.server.tls_channel import TlsChannel

UNAUTHORIZED = b"HTTP/1.0 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
BAD_REQUEST = b"HTTP/1.0 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
MAX_BODY = 4096
_PHRASES = {200: "OK", 202: "Accepted", 400: "Bad Request", 404: "Not Found", 405: "Not Allowed"}


class Request(NamedTuple):
    """A client's request: its connection, still non-blocking, and the first bytes of its body."""

    channel: TlsChannel
    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes


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
    ValueError
        If there is none or it is too large.
    """
    length = request.headers.get("content-length", "")
    if not length.isdigit() or int(length) > MAX_BODY:
        raise ValueError("no length, or too long")
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


def response_head(code: int, content_type: str, headers: Mapping[str, str]) -> bytes:
    """Return status line and headers of a response."""
    all_headers = {**headers, "Content-Type": content_type, "Connection": "close"}
    lines = [f"HTTP/1.0 {code} {_PHRASES.get(code, 'Error')}"]
    lines += [f"{name}: {value}" for name, value in all_headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")


def send_response(
    sock: socket.socket,
    code: int,
    body: bytes = b"",
    content_type: str = "application/json",
    headers: Mapping[str, str] | None = None,
) -> None:
    """Send a complete response."""
    length = {**(headers or {}), "Content-Length": str(len(body))}
    sock.sendall(response_head(code, content_type, length) + body)
