"""TFRecord, with tf.train.Example: read by file, local files also at records.

Formats: https://www.tensorflow.org/tutorials/load_data/tfrecord (a record is its length, a masked
CRC-32C of the length, the data, and a masked CRC-32C of the data, in little endian) and
tensorflow/core/example/feature.proto in the encoding of Protocol Buffers.
"""

from __future__ import annotations

import importlib
import struct
from typing import Any, BinaryIO, Callable, Iterator, Sequence

from submarine_data.batches import Batch
from submarine_data.errors import DataError
from submarine_data.file_systems import FileEntry
from submarine_data.formats.base import (
    Collector,
    Format,
    Reading,
    Split,
    damaged,
    is_compressed,
    is_local,
    open_decompressed,
    open_file,
)
from submarine_data.formats.text import DECOMPRESSION_ERRORS
from submarine_runtime.protobuf import fields, varint
from submarine_runtime.translation import _

_HEAD, _TAIL = 12, 4
_MASK = 0xA282EAD8
#: A record is not longer: another length is damage.
_LONGEST = 1 << 31


class TfRecordFormat(Format):
    """TFRecord files; files with the suffix ``.gz`` are decompressed.

    The checksums are verified where crc32c or google-crc32c is installed: Python itself would be
    slower than most disks.

    Parameters
    ----------
    files, reading
        See ``Format``.
    example
        Decode each record as tf.train.Example: a column for each feature, whose values are lists
        of bytes, float or int. False: the column ``record`` with bytes.
    scalars
        Features with exactly one value, which become the value itself instead of a list.
    """

    name = "tfrecord"

    def __init__(
        self,
        files: Sequence[FileEntry],
        reading: Reading,
        *,
        example: bool = True,
        scalars: Sequence[str] = (),
    ) -> None:
        super().__init__(files, reading)
        self._example, self._scalars = example, frozenset(scalars)

    def splits(self, file: FileEntry, unit: int) -> list[Split]:
        """Divide a large local file at records, by their lengths; another one is one part.

        The format has no marks: finding a record's start requires the lengths of all before it,
        which are too many requests to a remote file.
        """
        if file.size <= 2 * unit or not is_local(file) or is_compressed(file):
            return [Split(file, 0, None, file.size)]
        starts = [0]
        with open_file(file) as source:
            position = 0
            while position < file.size:
                length = _length(file, position, source.read(_HEAD))
                position += _HEAD + length + _TAIL
                if position - starts[-1] >= unit and position < file.size:
                    starts.append(position)
                source.seek(position)
        ends = [*starts[1:], file.size]
        return [Split(file, start, end, end - start) for start, end in zip(starts, ends)]

    def read(self, split: Split) -> Iterator[Batch]:
        """Yield the records that start in a range of bytes."""
        collector = Collector(self.reading.batch_size, self._batch)
        with open_decompressed(split.file) as source:
            for position, data in _records(split, source):
                record: Any = data
                if self._example:
                    try:
                        record = self._scalar_values(parse_example(data))
                    except (IndexError, ValueError, struct.error) as exc:
                        reason = _("the record is no tf.train.Example ({reason})").format(
                            reason=exc
                        )
                        raise damaged(split.file, f"byte {position}", reason) from exc
                batch = collector.add(record, len(data))
                if batch is not None:
                    yield batch
        rest = collector.rest()
        if rest is not None:
            yield rest

    def _scalar_values(self, features: dict[str, list[Any]]) -> dict[str, Any]:
        found: dict[str, Any] = dict(features)
        for name in self._scalars:
            values = features.get(name, [])
            if len(values) != 1:
                raise ValueError(
                    _("the feature {name} has {count} values").format(name=name, count=len(values))
                )
            found[name] = values[0]
        return found

    def _batch(self, records: list[Any]) -> Batch:
        if not self._example:
            return Batch({"record": records})
        names = dict.fromkeys(name for record in records for name in record)
        if self.reading.columns is not None:
            names = dict.fromkeys(self.reading.columns)
        columns: dict[str, list[Any]] = {}
        for name in sorted(names):
            if not any(name in record for record in records):
                raise DataError(
                    _("No record of {file} has the feature {name}.").format(
                        file=self.files[0].uri, name=name
                    )
                )
            columns[name] = [record.get(name, []) for record in records]
        return Batch(columns)


def crc_function() -> Callable[[bytes], int] | None:
    """Return CRC-32C of an installed package, or None."""
    found: Callable[[bytes], int]
    try:
        found = importlib.import_module("google_crc32c").value
    except ImportError:
        try:
            found = importlib.import_module("crc32c").crc32c
        except ImportError:
            return None
    return found


def _records(split: Split, source: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Yield position and data of each record of a range."""
    file, position = split.file, split.start
    crc = crc_function()
    if position:
        source.seek(position)
    while split.end is None or position < split.end:
        try:
            head = source.read(_HEAD)
            if not head:
                return
            length = _length(file, position, head, None if is_compressed(file) else file.size)
            data, tail = source.read(length), source.read(_TAIL)
        except DataError:
            raise
        except DECOMPRESSION_ERRORS as exc:
            raise damaged(file, f"byte {position}", exc) from exc
        if len(data) < length or len(tail) < _TAIL:
            raise damaged(file, f"byte {position}", _("it ends within a record"))
        if crc is not None:
            for part, stored in ((head[:8], head[8:]), (data, tail)):
                if _masked(crc(part)) != struct.unpack("<I", stored)[0]:
                    raise damaged(file, f"byte {position}", _("the checksum does not match"))
        yield position, data
        position += _HEAD + length + _TAIL


def _length(file: FileEntry, position: int, head: bytes, size: int | None = None) -> int:
    """Return the length of the record at a position."""
    if len(head) < _HEAD:
        raise damaged(file, f"byte {position}", _("it ends within a record"))
    length = int.from_bytes(head[:8], "little")
    left = _LONGEST if size is None else size - position - _HEAD - _TAIL
    if length > left:
        raise damaged(file, f"byte {position}", _("it ends within a record"))
    return length


def _masked(crc: int) -> int:
    return (((crc >> 15) | (crc << 17)) + _MASK) & 0xFFFFFFFF


def parse_example(data: bytes) -> dict[str, list[Any]]:
    """Return the features of a serialized tf.train.Example.

    Parameters
    ----------
    data
        The message of Protocol Buffers.

    Returns
    -------
    dict
        Values by feature: lists of bytes, float or int, also with no or one value.

    Raises
    ------
    ValueError, IndexError, struct.error
        If the bytes are no such message.
    """
    found = {}
    for number, features in fields(data):
        if number != 1:
            continue
        for entry_number, entry in fields(_message(features)):
            if entry_number != 1:
                continue
            parts = dict(fields(_message(entry)))
            name = _message(parts.get(1, b"")).decode("utf-8")
            found[name] = _feature(_message(parts.get(2, b"")))
    return found


def _feature(data: bytes) -> list[Any]:
    values: list[Any] = []
    for kind, content in fields(data):
        for number, value in fields(_message(content)):
            if number != 1:
                continue
            if kind == 1:
                values.append(_message(value))
            elif kind == 2:
                packed = _message(value)
                values.extend(struct.unpack(f"<{len(packed) // 4}f", packed))
            elif kind == 3:
                values.extend(_integers(value))
    return values


def _integers(value: int | bytes) -> Iterator[int]:
    if isinstance(value, int):
        yield _signed(value)
        return
    position = 0
    while position < len(value):
        number, position = varint(value, position)
        yield _signed(number)


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def _message(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise ValueError(_("a message was expected"))
    return value
