"""Requests of a kernel's clients, parsed from the bytes of their connections."""

from __future__ import annotations

import json

import pytest

from submarine_kernel.remote.sent_requests import MAX_HEADER, MAX_REQUESTS, SentRequests, Tap

GREETING = b"\xff\0\0\0\0\0\0\0\x01\x7f\x03\x01NULL".ljust(64, b"\0")
READY = b"\x04\x06\x05READY"


def frame(content: bytes, *, more: bool) -> bytes:
    """One frame of ZMTP 3."""
    if len(content) > 255:
        return bytes([2 | more]) + len(content).to_bytes(8, "big") + content
    return bytes([more, len(content)]) + content


def message(kind: str, number: str, parent: str = "", content: bytes = b"{}") -> bytes:
    """One message of a kernel's shell channel."""
    header = {"msg_type": kind, "msg_id": number, "session": "s"}
    above = {"msg_id": parent} if parent else {}
    texts = [json.dumps(each).encode() for each in (header, above)]
    frames = [b"<IDS|MSG>", b"0" * 64, *texts, b"{}", content, b"a buffer"]
    return b"".join(frame(each, more=at < len(frames) - 1) for at, each in enumerate(frames))


def numbers(requests: SentRequests) -> list[str]:
    return [header["msg_id"] for header in requests.all()]


@pytest.fixture
def requests() -> SentRequests:
    return SentRequests()


@pytest.fixture
def tap(requests: SentRequests) -> Tap:
    """The tap of an open connection."""
    made = requests.tap()
    for side in (made.sent, made.received):
        side(GREETING + READY)
    return made


def test_a_request_is_tracked_until_its_reply(requests: SentRequests, tap: Tap) -> None:
    tap.sent(message("execute_request", "a") + message("complete_request", "b"))
    tap.sent(message("execute_request", "c", content=b"x" * 70_000))
    assert numbers(requests) == ["a", "c"]
    tap.received(message("execute_reply", "r", parent="a"))
    tap.received(message("complete_reply", "q", parent="c"))
    assert numbers(requests) == ["c"]
    requests.clear()
    assert numbers(requests) == []


@pytest.mark.parametrize("size", [1, 2, 7, 64, 65, 1000])
def test_chunks_of_any_size_are_parsed(requests: SentRequests, size: int) -> None:
    stream = GREETING + READY
    for at in range(20):
        stream += message("execute_request", f"m{at}", content=b"y" * at * 100)
    tap = requests.tap()
    for at in range(0, len(stream), size):
        tap.sent(stream[at : at + size])
    assert numbers(requests) == [f"m{at}" for at in range(20)]


def test_a_reply_on_another_connection_counts(requests: SentRequests, tap: Tap) -> None:
    """A client that has reconnected gets the reply on its new connection."""
    tap.sent(message("execute_request", "a"))
    other = requests.tap()
    other.received(GREETING + READY + message("execute_reply", "r", parent="a"))
    assert numbers(requests) == []


@pytest.mark.parametrize(
    "invalid",
    [
        frame(b"<IDS|MSG>", more=False),
        frame(b"no delimiter", more=True) + frame(b"x" * 300, more=False),
        b"".join(frame(text, more=text != b"]") for text in (b"<IDS|MSG>", b"", b"[", b"{", b"]")),
        b"".join(
            frame(text, more=text != b"3")
            for text in (b"<IDS|MSG>", b"", b"[" * MAX_HEADER, b"{}", b"3")
        ),
        b"".join(
            frame(text, more=text != b"4")
            for text in (b"<IDS|MSG>", b"", b" " * (MAX_HEADER + 1), b"7", b"4")
        ),
    ],
)
def test_invalid_messages_are_ignored(requests: SentRequests, tap: Tap, invalid: bytes) -> None:
    tap.sent(invalid)
    tap.sent(message("execute_request", "a"))
    assert numbers(requests) == ["a"]


def test_encrypted_and_other_protocols_are_ignored(requests: SentRequests) -> None:
    words = message("execute_request", "a")
    curve, http = requests.tap(), requests.tap()
    curve.sent(GREETING + READY + b"\x06" + len(words).to_bytes(8, "big") + words)
    http.sent(b"GET / HTTP/1.1\r\n".ljust(64, b" ") + words)
    assert numbers(requests) == []


def test_only_the_newest_requests_are_kept(requests: SentRequests, tap: Tap) -> None:
    for at in range(MAX_REQUESTS + 5):
        tap.sent(message("execute_request", str(at)))
    assert numbers(requests) == [str(at) for at in range(5, MAX_REQUESTS + 5)]
