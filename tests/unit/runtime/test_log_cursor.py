"""The position in the logs of a job: repeated bytes, gaps, vectors, and lines of the stream."""

from __future__ import annotations

import base64
import json
import ssl
import threading
from typing import Any

import pytest
from hypothesis import given, strategies as st

from submarine_jobs.access import LogChunk
from submarine_runtime.coordinator.server.job_stream import JobStream
from submarine_runtime.protocol import LogCursor, LogKey, parse_log_key, read_log_line

KEY = LogKey("worker:0", "e1-a1", "stdout")


def log_line(content: bytes, **changes: Any) -> dict[str, Any]:
    text = base64.b64encode(content).decode()
    return {"type": "log", **KEY._asdict(), "offset": 7, "data": text, **changes}


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 20)), max_size=30))
def test_pieces_in_any_order_never_repeat_a_byte(pieces: list[tuple[int, int]]) -> None:
    whole = bytes(range(80))
    cursor = LogCursor()
    end = 0
    for offset, size in pieces:
        gap = cursor.gap(KEY, offset)
        fresh = LogChunk("stdout", offset, whole[offset : offset + size]).fresh(cursor)
        if fresh is None:
            assert offset + size <= end
            continue
        assert fresh.offset == max(end, offset)
        assert gap == fresh.offset - end
        assert fresh.data == whole[fresh.offset : offset + size]
        end = fresh.end
        assert cursor.of(KEY) == end


def test_the_vector_that_is_sent_is_bounded() -> None:
    keys = [LogKey(f"worker:{n}", "e1-a1", "stdout") for n in range(5000)]
    query = LogCursor(dict.fromkeys(keys, 17)).query(["*"])
    assert len(str(query["at"])) < 30_000
    assert query["stdout"] == 0


def test_the_vector_is_parsed_again() -> None:
    cursor = LogCursor({KEY: 17, KEY._replace(attempt="e2-a1", stream="stderr"): 3})
    again = LogCursor.parse(str(cursor))
    assert {key: again.of(key) for key in again.keys} == {
        key: cursor.of(key) for key in cursor.keys
    }
    assert again.newest("worker:0") == "e2-a1"
    assert LogCursor.parse("../secret.json=3,worker:0/e1-a1/stdin=4").keys == []


def test_a_single_agent_continues_or_begins_at_the_tail() -> None:
    """An agent of one task reads the streams only, a coordinator ``at`` and ``tail``."""
    ends = dict.fromkeys(("stdout", "stderr", "helper"), -100)
    assert LogCursor().query([], 100) == {**ends, "tasks": "", "tail": 100}
    query = LogCursor({KEY: 17}).query(["worker:0"], 100)
    assert (query["stdout"], query["stderr"]) == (17, -100)
    assert query["at"] == "worker:0/e1-a1/stdout=17"


@pytest.mark.parametrize("text", ["worker:0/e1-a1/stdin", "worker/e1-a1/stdout", "x", "a/b/../c"])
def test_no_key(text: str) -> None:
    assert parse_log_key(text) is None


@pytest.mark.parametrize("size", range(7))
def test_lines_of_the_stream_have_their_length(size: int) -> None:
    found = read_log_line(log_line(b"x" * size))
    assert found is not None
    assert (found.key, found.begin, found.end) == (KEY, 7, 7 + size)
    assert LogChunk.of(found).data == b"x" * size


def test_a_line_without_an_attempt_belongs_to_the_given_one() -> None:
    line = log_line(b"x", attempt=None)
    first, own = read_log_line(line), read_log_line(line, "e2-a1")
    assert first is not None
    assert own is not None
    assert (first.key.attempt, own.key.attempt) == ("e1-a1", "e2-a1")
    assert read_log_line({"type": "ping"}) is None


@pytest.mark.parametrize("changes", [{"offset": -1}, {"offset": []}, {"data": 5}])
def test_an_invalid_line_is_rejected(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="log"):
        read_log_line(log_line(b"x", **changes))


@pytest.mark.parametrize("changes", [{"task": "../x"}, {"task": 1}, {"stream": "samples"}])
def test_a_log_that_this_release_does_not_know_is_ignored(changes: dict[str, Any]) -> None:
    assert read_log_line(log_line(b"x", **changes)) is None


def test_text_that_is_not_base64_is_rejected() -> None:
    found = read_log_line(log_line(b"", data="\u00e4!!!"))
    assert found is not None
    with pytest.raises(ValueError, match=r"ASCII|base64"):
        LogChunk.of(found)


class Agent:
    """The stream of an agent, as the coordinator has opened it."""

    task = "worker:0"

    class endpoint:
        epoch, attempt = 1, 1


def forwarded(line: bytes) -> tuple[bytes, LogCursor]:
    sent: list[bytes] = []
    unused: Any = None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    stream = JobStream(sent.append, unused, dict, "", context, threading.Event())
    stream._cursor = LogCursor()
    agent: Any = Agent
    stream._forward_line(agent, line)
    return b"".join(sent), stream._cursor


def test_a_coordinator_passes_the_bytes_of_an_agent_on() -> None:
    line = json.dumps(log_line(b"hello")).encode().replace(b", ", b" ,  ")
    sent, cursor = forwarded(line)
    assert sent == line + b"\n"
    assert cursor.of(KEY) == 12


@pytest.mark.parametrize("changes", [{"task": "ps:7"}, {"attempt": "latest"}, {"extra": 1}])
def test_a_coordinator_names_the_log_itself(changes: dict[str, Any]) -> None:
    """An agent cannot send lines of another task."""
    sent, cursor = forwarded(json.dumps(log_line(b"hello", **changes)).encode())
    assert {**json.loads(sent), **changes, **KEY._asdict()} == json.loads(sent)
    assert cursor.keys == [KEY]
