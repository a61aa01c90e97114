"""Read the fields of protobuf messages, without the package protobuf.

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
