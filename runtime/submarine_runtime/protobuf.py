"""Read and write the fields of protobuf messages, without the package protobuf.

Format: https://protobuf.dev/programming-guides/encoding/
"""

from __future__ import annotations

from typing import Iterator

from submarine_runtime.translation import _


def fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield number and value of each field; fixed-size values as bytes.

    Raises
    ------
    ValueError, IndexError
        If this is not a protobuf message.
    """
    place, end = 0, len(message)
    while place < end:
        key, place = varint(message, place)
        kind = key & 7
        if kind == 0:
            value, place = varint(message, place)
            yield key >> 3, value
            continue
        if kind == 2:
            length, place = varint(message, place)
        elif kind in (1, 5):
            length = 8 if kind == 1 else 4
        else:
            raise ValueError(_("wire type {wire}").format(wire=kind))
        if place + length > end:
            raise IndexError(_("it ends within a field"))
        yield key >> 3, message[place : place + length]
        place += length


def varint(message: bytes, place: int) -> tuple[int, int]:
    """Return the integer at a position, and the position after it.

    Raises
    ------
    ValueError, IndexError
        If there is no such integer.
    """
    value = shift = 0
    while True:
        byte = message[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place
        shift += 7
        if shift > 63:
            raise ValueError(_("an integer is too long"))


def parts(data: bytes) -> Iterator[bytes]:
    """Yield the messages that follow each other, each after its length."""
    place = 0
    while place < len(data):
        length, place = varint(data, place)
        yield data[place : place + length]
        place += length


def encode(*values: tuple[int, int | str | bytes]) -> bytes:
    """Return the message of numbers and values of fields."""
    data = b""
    for number, value in values:
        if isinstance(value, int):
            data += _varint(number << 3) + _varint(value)
        else:
            text = value.encode() if isinstance(value, str) else value
            data += _varint(number << 3 | 2) + delimited(text)
    return data


def delimited(message: bytes) -> bytes:
    """Return a message after its length."""
    return _varint(len(message)) + message


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1  # A negative one has 64 bits.
    data = b""
    while value > 127:
        data += bytes([value & 127 | 128])
        value >>= 7
    return data + bytes([value])
