"""Messages recorded between a real Zeppelin server 0.10.0 and the interpreter.

``recorded/zeppelin-0.10.0.json`` contains one call of each method; properties of ``init`` with
paths are left out. ``test_later_versions`` tests later versions.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from submarine_zeppelin.interface import Code, Kind, Message, Result
from submarine_zeppelin.thrift import BoundSocket, EventClient, EventRefusedError, transport
from tests.unit.zeppelin.thrift.wire import Parts, Wire, exchange, without_number

RECORDED = json.loads((Path(__file__).parent / "recorded" / "zeppelin-0.10.0.json").read_text())
TEXT = "\npercent 7\nhtml <i>x</i>\nlines 2\nlink http://h/p\nlist\nsay done ¶"


def recorded(service: str, method: str, number: int = 0) -> tuple[bytes, bytes]:
    found = [one for one in RECORDED[service] if one["method"] == method][number]
    return bytes.fromhex(found["request"]), bytes.fromhex(found["answer"])


@pytest.mark.parametrize(
    "method",
    [
        "init",
        "createInterpreter",
        "angularRegistryPush",
        "getFormType",
        "completion",
        "resourcePoolGetAll",
        "close",
        "shutdown",
        "getStatus",
        "cancel",
    ],
)
def test_answers_to_the_server(method: str) -> None:
    request, answer = recorded("service", method)
    assert exchange(Parts(), request) == answer


def test_call_and_answer_of_a_paragraph() -> None:
    request, answer = recorded("service", "interpret")
    parts = Parts()
    parts.messages = (
        Message(Kind.TEXT, _text_of(answer, "prepare.py|")),
        Message(Kind.TEXT, "done ¶"),
    )
    assert exchange(parts, request) == answer
    text, context = dict(parts.calls)["run"]
    assert text == TEXT
    assert context.note_name == "Recorded"
    assert context.title == "prepare.py"
    assert context.text == f"%echo(a=1,only){TEXT}"
    assert (context.user, context.roles, context.recovering) == ("anonymous", (), False)
    assert context.options == {"a": "1", "only": "only"}
    assert (context.params, context.config) == ({}, {})


def test_answer_of_a_paragraph_that_keeps_its_output() -> None:
    request, answer = recorded("service", "interpret", 1)
    assert exchange(Parts(), request) == answer


def test_properties_of_the_server_are_received() -> None:
    parts = Parts()
    exchange(parts, recorded("service", "init")[0])
    properties = dict(parts.calls)["init"]
    assert properties["zeppelin.recovery.storage.class"].endswith("NullRecoveryStorage")
    exchange(parts, recorded("service", "createInterpreter")[0])
    session, class_name, properties = dict(parts.calls)["create"]
    assert (session, class_name) == ("shared_session", "echo")
    assert properties["zeppelin.interpreter.output.limit"] == "102400"


def _text_of(answer: bytes, start: str) -> str:
    text = answer.decode("utf-8", "replace")
    begin = text.index(start)
    return text[begin : text.index("'\x00", begin) + 1]


def _paragraph_in(request: bytes) -> str:
    place = request.index(b"paragraph_")
    return request[place : place + 34].decode()


def _string_after(request: bytes, mark: bytes) -> str:
    place = request.index(mark) + len(mark)
    size = int.from_bytes(request[place : place + 4], "big")
    return request[place + 4 : place + 4 + size].decode()


def _call(client: EventClient, method: str, request: bytes) -> object:
    """Make the call that sent a recorded request."""
    note = request[request.index(b"2N") :][:9].decode() if b"2N" in request else ""
    if method == "registerInterpreterProcess":
        port = int.from_bytes(request[request.index(b"\x08\x00\x02") + 3 :][:4], "big")
        return client.register("127.0.0.1", port)
    if method == "getParagraphList":
        return client.paragraphs(note, "anonymous")
    paragraph = _paragraph_in(request)
    if method == "updateAllOutput":
        return client.update_all(note, paragraph, [])
    if method == "checkpointOutput":
        return client.checkpoint(note, paragraph)
    if method == "appendOutput":
        return client.append(note, paragraph, 1, _string_after(request, b"\x0b\x00\x04"))
    if method == "sendParagraphInfo":
        return client.link(note, paragraph, "JOB", "http://h/p", "")
    assert method == "updateOutput"
    kind = Kind(_string_after(request, b"\x0b\x00\x04"))
    index = int.from_bytes(request[request.index(b"\x08\x00\x03") + 3 :][:4], "big")
    data = _string_after(request, b"\x0b\x00\x05")
    return client.update(note, paragraph, index, Message(kind, data))


@pytest.mark.parametrize("method", [one["method"] for one in RECORDED["event"]])
def test_calls_of_the_event_client(method: str) -> None:
    request, answer = recorded("event", method)
    wire = Wire(answer)
    client = EventClient("127.0.0.1", wire.port, "echo-shared_process")
    result = _call(client, method, request)
    client.close()
    assert without_number(wire.done()) == without_number(request)
    if method == "getParagraphList":
        assert isinstance(result, list)
        assert [one.title for one in result] == ["prepare.py", "", ""]
        assert result[0].text == f"%echo(a=1,only){TEXT}"


def test_error_of_the_server() -> None:
    request, answer = recorded("refused", "updateOutput")
    wire = Wire(answer)
    client = EventClient("127.0.0.1", wire.port, "echo-shared_process")
    with pytest.raises(EventRefusedError, match="Internal error"):
        _call(client, "updateOutput", request)
    client.close()
    wire.done()


def test_a_port_is_not_shared() -> None:
    first = BoundSocket("127.0.0.1", range(0))
    first.listen()
    with pytest.raises(OSError, match="in use"):
        BoundSocket("127.0.0.1", range(first.port, first.port + 1))
    first.close()


def test_is_local() -> None:
    assert transport.is_local("127.0.0.1")
    assert transport.is_local("localhost")
    assert not transport.is_local("192.0.2.7")
    assert not transport.is_local("no-such-host.invalid")


@pytest.mark.parametrize("given", ["", "null", "[]", "3", "{", '"x"'])
def test_malformed_forms_and_settings_are_returned_as_empty_objects(given: str) -> None:
    from submarine_zeppelin.thrift import protocol, wire_result

    wire = protocol.RemoteInterpreterContext(config=given, gui=given, noteGui=given)
    result = wire_result(Result(Code.SUCCESS), wire)
    assert (result.config, result.gui, result.noteGui, result.msg) == ("{}", "{}", "{}", [])
    kept = protocol.RemoteInterpreterContext(config='{"a": 1}', gui='{"b":2}', noteGui=None)
    result = wire_result(Result(Code.KEEP, forms={"forms": {}}), kept)
    assert (result.config, result.gui) == ('{"a": 1}', '{"forms": {}}')
