"""Messages of protobuf, against the examples of its documentation and against their decoder."""

from __future__ import annotations

from submarine_runtime.protobuf import delimited, encode, fields, parts


def test_messages_are_those_of_the_documentation() -> None:
    assert encode((1, 150)) == b"\x08\x96\x01"
    assert encode((2, "testing")) == b"\x12\x07testing"
    assert encode((3, encode((1, 150)))) == b"\x1a\x03\x08\x96\x01"
    assert encode((1, -2)) == b"\x08\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"


def test_a_message_has_the_fields_that_its_decoder_finds() -> None:
    inner = encode((1, "127.1.0.1"), (2, 45454))
    message = encode((1, inner), (2, 0), (3, 300), (3, 1 << 40), (4, b""), (5, -1000))
    found = [(1, inner), (2, 0), (3, 300), (3, 1 << 40), (4, b""), (5, (1 << 64) - 1000)]
    assert list(fields(message)) == found


def test_messages_follow_each_other_after_their_lengths() -> None:
    messages = [b"", b"a", b"b" * 300]
    data = b"".join(map(delimited, messages))
    assert data.startswith(b"\x00\x01a\xac\x02b")
    assert list(parts(data)) == messages
