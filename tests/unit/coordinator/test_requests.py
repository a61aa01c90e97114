"""Requests to the coordinator's port."""

from __future__ import annotations

import pytest

from submarine_runtime.port.http_messages import has_token, parse_request_head
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


def test_offsets_of_a_stream_are_parsed() -> None:
    text = "worker:0/e1-a1/stdout=17,ps:0/e2-a1/stderr=-3"
    cursor = LogCursor.parse(text)
    assert str(cursor) == "worker:0/e1-a1/stdout=17,ps:0/e2-a1/stderr=0"
    assert [cursor.of(key) for key in cursor.keys] == [17, 0]
    with pytest.raises(ValueError, match="invalid literal"):
        LogCursor.parse("worker:0/e1-a1/stdout=many")
