"""The head of an HTTP request, and whether its sender knows the token. No sockets."""

from __future__ import annotations

import hmac
from typing import Mapping, NamedTuple

from submarine_runtime.coordinator.server.tls_channel import Channel

REFUSED = b"HTTP/1.0 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
BAD = b"HTTP/1.0 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class Request(NamedTuple):
    """A viewer's request: its connection, still non-blocking, and the first bytes of its body."""

    channel: Channel
    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes


def parse_head(head: bytes) -> tuple[str, str, dict[str, str]]:
    """Method, target and headers (names in lower case).

    Raises
    ------
    ValueError
        If it is no request.
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


def knows_token(headers: Mapping[str, str], token: bytes) -> bool:
    """Compare in constant time."""
    scheme, _, presented = headers.get("authorization", "").partition(" ")
    given = presented.strip().encode("utf-8", "replace")
    return scheme.lower() == "bearer" and hmac.compare_digest(given, token)
