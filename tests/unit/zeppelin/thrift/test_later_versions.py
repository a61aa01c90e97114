"""Messages of Zeppelin 0.11 and 0.12, of which no server packages exist.

The bytes were recorded from the classes of each version, compiled from its sources, with the
contexts that its ``RemoteInterpreter`` creates. The files have the format of the recordings of a
real server 0.10.0 (``test_protocol``).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from submarine_zeppelin.interface import Context, Kind, Message
from submarine_zeppelin.thrift import EventClient, EventRefusedError
from tests.unit.zeppelin.thrift.wire import Parts, Wire, exchange, without_number

VERSIONS = ("0.11.2", "0.12.1")
NOTE, PARAGRAPH = "2KQ4ZX7AB", "paragraph_1795323519655_1957597860"
TEXT = "\nimport numpy\nprint('done ¶')"
Call = Callable[[EventClient], object]
#: Calls of the event client, in the order of the recordings.
CALLS: dict[str, Call] = {
    "registerInterpreterProcess": lambda client: client.register("127.0.0.1", 39703),
    "updateAllOutput": lambda client: client.update_all(NOTE, PARAGRAPH, []),
    "updateOutput": lambda client: client.update(
        NOTE, PARAGRAPH, 0, Message(Kind.HTML, "<b>number 3</b>")
    ),
    "appendOutput": lambda client: client.append(NOTE, PARAGRAPH, 1, "line 0\nline 1 ¶\n"),
    "checkpointOutput": lambda client: client.checkpoint(NOTE, PARAGRAPH),
    "sendParagraphInfo": lambda client: client.link(NOTE, PARAGRAPH, "JOB", "http://h/p", ""),
    "getParagraphList": lambda client: client.paragraphs(NOTE, "ada"),
}


@pytest.fixture(params=VERSIONS)
def recording(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Return the recordings of one version."""
    folder = Path(__file__).parent / "recorded"
    found: dict[str, Any] = json.loads((folder / f"zeppelin-{request.param}.json").read_text())
    assert found["zeppelin"] == request.param
    return found


def test_answers_to_calls_of_a_server(recording: dict[str, Any]) -> None:
    calls = []
    for one in recording["service"]:
        if one["method"] == "interpret":
            continue
        parts = Parts()
        answer = exchange(parts, bytes.fromhex(one["request"]))
        assert answer == bytes.fromhex(one["answer"]), one["method"]
        calls += parts.calls
    received = dict(calls)
    assert received["init"]["zeppelin.interpreter.connect.timeout"] == "600s"
    assert received["create"] == (
        "shared_session",
        "submarine_zeppelin.Python",
        {"submarine.stop": "detach", "zeppelin.interpreter.output.limit": "102400"},
    )
    assert received["reconnect"] == ("127.0.0.1", 40123)
    assert received["cancel"] == PARAGRAPH
    assert {"completion", "status", "close", "shutdown"} <= set(received)


def test_context_of_a_paragraph(recording: dict[str, Any]) -> None:
    runs = [one for one in recording["service"] if one["method"] == "interpret"]
    contexts: list[Context] = []
    for number, one in enumerate(runs):
        parts = Parts()
        parts.messages = (Message(Kind.TEXT, "done ¶"),) if number == 0 else ()
        # Settings and forms are returned unchanged; otherwise the server repeats the call.
        assert exchange(parts, bytes.fromhex(one["request"])) == bytes.fromhex(one["answer"])
        text, context = dict(parts.calls)["run"]
        assert text == TEXT
        contexts.append(context)
    first, _, recovered = contexts
    assert (first.note_id, first.paragraph_id, first.title) == (NOTE, PARAGRAPH, "prepare.py")
    assert (first.user, first.roles) == ("ada", ("science",))
    assert first.options == {"only": "only", "a": "1"}
    assert first.config == {"colWidth": 12.0, "runOnSelectionChange": False}
    assert first.params["input_path"] == "/data"
    assert (first.recovering, recovered.recovering, recovered.title) == (False, True, "")
    assert "of-ada-2291" not in repr(first), "passwords must not be passed on"


def test_calls_of_the_event_client(recording: dict[str, Any]) -> None:
    recorded = {one["method"]: one for one in recording["event"]}
    for method, call in CALLS.items():
        request, answer = (bytes.fromhex(recorded[method][key]) for key in ("request", "answer"))
        result, sent = call_with_answer(call, answer)
        assert without_number(sent) == without_number(request), method
        if method == "getParagraphList":
            assert isinstance(result, list)
            assert [(one.title, one.text) for one in result] == [
                ("prepare.py", f"%submarine.python(only, a=1){TEXT}"),
                ("", "%md\nText"),
            ]


@pytest.mark.parametrize(
    ("method", "words"),
    [("updateOutput", "Internal error"), ("checkpointOutput", "no such note")],
)
def test_errors_of_the_server(recording: dict[str, Any], method: str, words: str) -> None:
    (refused,) = [one for one in recording["refused"] if one["method"] == method]
    with pytest.raises(EventRefusedError, match=words):
        call_with_answer(CALLS[method], bytes.fromhex(refused["answer"]))


def call_with_answer(call: Call, answer: bytes) -> tuple[object, bytes]:
    """Make a call that gets an answer, and return its result and the bytes sent."""
    wire = Wire(answer)
    client = EventClient("127.0.0.1", wire.port, "submarine-shared_process")
    try:
        return call(client), wire.done()
    finally:
        client.close()
        wire.done()
