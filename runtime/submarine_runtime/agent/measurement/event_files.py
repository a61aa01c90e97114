"""Decode the training scalars in TensorBoard event files, without TensorFlow.

An event file is a sequence of framed records (length, checksum, data, checksum), each a small
protobuf message. Only the scalars of the newest records are decoded, within a limit; images, graphs
and damaged records are skipped. Checksums are not verified. ``scalar_files`` finds the files.
"""

from __future__ import annotations

import struct

from submarine_runtime.protobuf import fields

#: The largest record that may hold scalars, and records decoded at once.
MAX_RECORD = 1 << 14
MAX_DECODED = 200
#: A longer record means that the file is damaged; it is not read further.
DAMAGED_LENGTH = 1 << 31
_HEADER = 12
FRAME = 16
#: Fields of a ``TensorProto`` that may hold the number: tensor_content, float_val, double_val.
_VALUES = (4, 5, 6)
#: (DT_FLOAT or DT_DOUBLE, bytes of one number) -> format of ``struct``.
_FORMS = {(1, 4): "<f", (2, 8): "<d"}


def frames(data: bytes, offset: int, size: int) -> tuple[list[bytes], int]:
    """Return the small records in ``data`` and the next file offset; -1: the file is damaged."""
    found: list[bytes] = []
    place = 0
    while place + _HEADER <= len(data):
        (length,) = struct.unpack_from("<Q", data, place)
        if length > DAMAGED_LENGTH:
            return found, -1
        end = place + FRAME + length
        if offset + end > size:
            break  # It is still being written.
        if end > len(data) and length <= MAX_RECORD:
            break
        if length <= MAX_RECORD:
            found.append(data[place + _HEADER : end - 4])
        place = end
    return found, offset + place


def newest_records(records: list[bytes]) -> list[bytes]:
    """Return the newest records, and the last of each length among the rest for rare tags."""
    if len(records) <= MAX_DECODED:
        return records
    rest = {len(record): record for record in records[:-MAX_DECODED]}
    return [*list(rest.values())[:MAX_DECODED], *records[-MAX_DECODED:]]


def scalars(record: bytes) -> list[tuple[str, float]]:
    """Return tags and values of an ``Event`` message; empty for any other content or damage."""
    found: list[tuple[str, float]] = []
    try:
        for number, summary in fields(record):
            if number == 5 and isinstance(summary, bytes):
                for field, value in fields(summary):
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
    for number, content in fields(message):
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
    for number, data in fields(metadata):
        if number == 1 and isinstance(data, bytes):
            for field, name in fields(data):
                if field == 1 and isinstance(name, bytes):
                    return name.decode("utf-8", "replace")
    return "scalars"


def _tensor(message: bytes) -> float | None:
    """Return the number in a ``TensorProto`` that holds one; None for text and larger shapes."""
    kind, content = 0, b""
    for number, value in fields(message):
        if number == 1 and isinstance(value, int):
            kind = value
        elif number in _VALUES and isinstance(value, bytes):
            content = value
    form = _FORMS.get((kind, len(content)))
    return None if form is None else float(struct.unpack(form, content)[0])
