"""Decode the scalars of one TensorBoard event with a minimal protobuf reader."""

from __future__ import annotations

import struct
from typing import Iterator

#: Fields of a ``TensorProto`` that may hold the number: tensor_content, float_val, double_val.
_VALUES = (4, 5, 6)
#: (DT_FLOAT or DT_DOUBLE, bytes of one number) -> format of ``struct``.
_FORMS = {(1, 4): "<f", (2, 8): "<d"}


def scalars(record: bytes) -> list[tuple[str, float]]:
    """Return tags and values of an ``Event`` message; empty for any other content or damage."""
    found: list[tuple[str, float]] = []
    try:
        for number, summary in _fields(record):
            if number == 5 and isinstance(summary, bytes):
                for field, value in _fields(summary):
                    if field == 1 and isinstance(value, bytes):
                        scalar = _scalar(value)
                        if scalar is not None:
                            found.append(scalar)
    except (ValueError, struct.error, IndexError):
        return found
    return found


def _scalar(message: bytes) -> tuple[str, float] | None:
    """Decode a ``Summary.Value``: ``simple_value`` (TF 1) or a tensor of one number (TF 2)."""
    tag, value, plugin = "", None, "scalars"
    for number, content in _fields(message):
        if number == 1 and isinstance(content, bytes):
            tag = content.decode("utf-8", "replace")
        elif number == 2 and isinstance(content, bytes):
            (value,) = struct.unpack("<f", content)
        elif number == 8 and isinstance(content, bytes):
            value = _tensor(content)
        elif number == 9 and isinstance(content, bytes):
            plugin = _plugin(content)
    if not tag or value is None or plugin != "scalars":
        return None
    return tag, value


def _plugin(metadata: bytes) -> str:
    for number, data in _fields(metadata):
        if number == 1 and isinstance(data, bytes):
            for field, name in _fields(data):
                if field == 1 and isinstance(name, bytes):
                    return name.decode("utf-8", "replace")
    return "scalars"


def _tensor(message: bytes) -> float | None:
    """Return the number in a ``TensorProto`` that holds one; None for text and larger shapes."""
    kind, content = 0, b""
    for number, value in _fields(message):
        if number == 1 and isinstance(value, int):
            kind = value
        elif number in _VALUES and isinstance(value, bytes):
            content = value
    form = _FORMS.get((kind, len(content)))
    return None if form is None else float(struct.unpack(form, content)[0])


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield number and value of each field; fixed-size values as bytes.

    Raises
    ------
    ValueError, IndexError
        If this is not a protobuf message.
    """
    place, end = 0, len(message)
    while place < end:
        key, place = _varint(message, place)
        kind = key & 7
        if kind == 0:
            value, place = _varint(message, place)
            yield key >> 3, value
            continue
        if kind == 2:
            length, place = _varint(message, place)
        elif kind in (1, 5):
            length = 8 if kind == 1 else 4
        else:
            raise ValueError(f"wire type {kind}")
        if place + length > end:
            raise ValueError("a field leaves its message")
        yield key >> 3, message[place : place + length]
        place += length


def _varint(message: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place
        shift += 7
        if shift > 63:
            raise ValueError("a number without end")
