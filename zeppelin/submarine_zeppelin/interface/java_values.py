"""Texts, numbers and booleans in Java's serialization format, by which interpreters share values.

Zeppelin's server reads and writes each shared value. The format is that of Java's Object
Serialization Stream Protocol, version 5; other classes are not supported.
"""

from __future__ import annotations

import struct

from submarine_runtime.translation import _

ResourceValue = str | bool | int | float

_HEADER = b"\xac\xed\x00\x05"
_STRING, _LONG_STRING, _NULL = b"\x74", b"\x7c", b"\x70"


def _class(name: str, serial: str, kind: str, *, number: bool) -> bytes:
    parent = b""
    if number:
        parent = b"\x72" + _short("java.lang.Number") + bytes.fromhex("86ac951d0b94e08b")
        parent += b"\x02\x00\x00\x78\x70"
    head = b"\x73\x72" + _short(name) + bytes.fromhex(serial) + b"\x02\x00\x01"
    return head + kind.encode() + _short("value") + b"\x78" + (parent or _NULL)


def _short(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode("ascii")


#: Class -> its description in a stream, and the format of its value.
_BOXED = {
    "java.lang.Boolean": (_class("java.lang.Boolean", "cd207280d59cfaee", "Z", number=False), ">?"),
    "java.lang.Integer": (_class("java.lang.Integer", "12e2a0a4f7818738", "I", number=True), ">i"),
    "java.lang.Long": (_class("java.lang.Long", "3b8be490cc8f23df", "J", number=True), ">q"),
    "java.lang.Float": (_class("java.lang.Float", "daedc9a2db3cf0ec", "F", number=True), ">f"),
    "java.lang.Double": (_class("java.lang.Double", "80b3c24a296bfb04", "D", number=True), ">d"),
}


def java_class(value: ResourceValue) -> str:
    """Return the name of the class of a value in Java.

    Raises
    ------
    ValueError
        If the number has more than 64 bits.
    """
    if isinstance(value, bool):
        return "java.lang.Boolean"
    if isinstance(value, float):
        return "java.lang.Double"
    if isinstance(value, str):
        return "java.lang.String"
    if not -(1 << 63) <= value < 1 << 63:
        raise ValueError(_("a number that is shared has at most 64 bits"))
    return "java.lang.Integer" if -(1 << 31) <= value < 1 << 31 else "java.lang.Long"


def to_java(value: ResourceValue) -> bytes:
    """Serialize a value."""
    if not isinstance(value, str):
        description, form = _BOXED[java_class(value)]
        return _HEADER + description + struct.pack(form, value)
    data = _modified_utf8(value)
    if len(data) < 1 << 16:
        return _HEADER + _STRING + struct.pack(">H", len(data)) + data
    return _HEADER + _LONG_STRING + struct.pack(">Q", len(data)) + data


def from_java(data: bytes) -> ResourceValue | None:
    """Return a serialized value; None for null and an empty answer.

    Raises
    ------
    ValueError
        If the value has another class, or the data is damaged.
    """
    if not data or data == _HEADER + _NULL:
        return None
    body = data.removeprefix(_HEADER)
    if body[:1] == _STRING:
        return _text(body[3:])
    if body[:1] == _LONG_STRING:
        return _text(body[9:])
    for description, form in _BOXED.values():
        if body.startswith(description) and len(body) == len(description) + struct.calcsize(form):
            value: ResourceValue = struct.unpack(form, body[len(description) :])[0]
            return value
    raise ValueError(_("the shared value is neither a text, a number nor a boolean"))


def _modified_utf8(text: str) -> bytes:
    """Encode as Java does: surrogates of characters above U+FFFF, and NUL in two bytes."""
    units = text.encode("utf-16-be", "surrogatepass")
    plain = "".join(map(chr, struct.unpack(f">{len(units) // 2}H", units)))
    return plain.encode("utf-8", "surrogatepass").replace(b"\0", b"\xc0\x80")


def _text(data: bytes) -> str:
    plain = data.replace(b"\xc0\x80", b"\0").decode("utf-8", "surrogatepass")
    return plain.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "replace")
