"""HTTP as the coordinator's port speaks it with viewers: one request, one answer, bounded."""

from __future__ import annotations

import json
import socket
from typing import Any, Mapping

from submarine_runtime.coordinator.server.http_messages import Request

MAX_BODY = 4096
_PHRASES = {200: "OK", 202: "Accepted", 400: "Bad Request", 404: "Not Found", 405: "Not Allowed"}


def body_of(request: Request, sock: socket.socket) -> dict[str, Any]:
    """The JSON object that came with a request.

    Raises
    ------
    ValueError
        If there is none, or it is too large.
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


def head_of(code: int, kind: str, headers: Mapping[str, str]) -> bytes:
    """Status line and headers of an answer."""
    every = {**headers, "Content-Type": kind, "Connection": "close"}
    lines = [f"HTTP/1.0 {code} {_PHRASES.get(code, 'Error')}"]
    lines += [f"{name}: {value}" for name, value in every.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")


def reply(
    sock: socket.socket,
    code: int,
    body: bytes = b"",
    kind: str = "application/json",
    headers: Mapping[str, str] | None = None,
) -> None:
    """Send a whole answer."""
    length = {**(headers or {}), "Content-Length": str(len(body))}
    sock.sendall(head_of(code, kind, length) + body)
