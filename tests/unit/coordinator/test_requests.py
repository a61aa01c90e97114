"""Requests to the coordinator's port."""

from __future__ import annotations

import pytest

from submarine_runtime.port import RefusedError
from submarine_runtime.port.http_messages import (
    has_token,
    head_error,
    parse_request_head,
    response,
)
from submarine_runtime.protocol import LogCursor


def test_request_heads_and_tokens() -> None:
    head = b"GET /v1/link HTTP/1.1\r\nAuthorization: Bearer secret\r\nUpgrade: x"
    method, target, headers = parse_request_head(head)
    assert (method, target, headers["upgrade"]) == ("GET", "/v1/link", "x")
    assert has_token(headers, b"secret")
    assert not has_token(headers, b"other")
    assert not has_token({}, b"")
    with pytest.raises(ValueError, match="not a request"):
        parse_request_head(b"\x16\x03\x01 nonsense")


def test_heads_are_bounded() -> None:
    assert head_error(b"GET /v1/status HTTP/1.1\r\nA: b") == 0
    assert head_error(b"GET /" + b"a" * 9000) == 414
    assert head_error(b"GET / HTTP/1.1\r\nA: " + b"b" * 9000) == 431
    assert head_error(b"GET / HTTP/1.1" + b"\r\nA: b" * 101) == 431
    with pytest.raises(ValueError, match="not a request"):
        head_error(b"\r\nGET / HTTP/1.1")


def test_a_refusal_is_a_complete_response() -> None:
    refused = RefusedError(409, "The name is taken.", {"X": "y"})
    head, _, body = response(refused.code, refused.body, headers=refused.headers).partition(
        b"\r\n\r\n"
    )
    assert head.startswith(b"HTTP/1.0 409 Conflict\r\nConnection: close\r\nX: y\r\n")
    assert body == b'{"error": "The name is taken."}'
    assert b"Content-Length: 31" in head
    assert RefusedError(404).body == b""


def test_offsets_of_a_stream_are_parsed() -> None:
    text = "worker:0/e1-a1/stdout=17,ps:0/e2-a1/stderr=-3"
    cursor = LogCursor.parse(text)
    assert str(cursor) == "worker:0/e1-a1/stdout=17,ps:0/e2-a1/stderr=0"
    assert [cursor.of(key) for key in cursor.keys] == [17, 0]
    with pytest.raises(ValueError, match="invalid literal"):
        LogCursor.parse("worker:0/e1-a1/stdout=many")
