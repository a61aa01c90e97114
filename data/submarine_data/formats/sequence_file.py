"""SequenceFile of Hadoop: divided at sync marks.

Format: version 6, as the documentation of org.apache.hadoop.io.SequenceFile describes it, and
org.apache.hadoop.io.WritableUtils for integers of variable length. Compression: none, of records,
of blocks; codecs Default and Deflate (zlib), Gzip, BZip2, and Snappy where cramjam is installed.
"""

from __future__ import annotations

import bz2
import struct
import zlib
from typing import Any, BinaryIO, Callable, Iterator, NamedTuple

from submarine_data.batches import Batch
from submarine_data.errors import DataError, require
from submarine_data.file_systems import FileEntry
from submarine_data.formats.base import (
    Collector,
    Format,
    Split,
    damaged,
    find_marker,
    open_file,
)
from submarine_data.sharding import ranges
from submarine_runtime.translation import _

_IO = "org.apache.hadoop.io."
_CODEC = _IO + "compress."
#: In the place of a record's length: a sync mark follows.
_ESCAPE = b"\xff\xff\xff\xff"
_MARK_BYTES = 16
#: A class name or a value of the metadata is not longer.
_LONGEST_NAME = 1 << 20


class _DamageError(Exception):
    """The bytes are no SequenceFile; the message says why."""


def _snappy(data: bytes) -> bytes:
    """Decompress Hadoop's blocks of Snappy: length of the block, then chunks with their lengths."""
    raw = require("cramjam", "A SequenceFile with Snappy").snappy
    parts, position = [], 0
    while position < len(data):
        (left,) = struct.unpack_from(">i", data, position)
        position += 4
        while left > 0:
            (size,) = struct.unpack_from(">i", data, position)
            position += 4
            part = bytes(raw.decompress_raw(data[position : position + size]))
            position += size
            left -= len(part)
            parts.append(part)
    return b"".join(parts)


_CODECS: dict[str, Callable[[bytes], bytes]] = {
    _CODEC + "DefaultCodec": zlib.decompress,
    _CODEC + "DeflateCodec": zlib.decompress,
    _CODEC + "GzipCodec": lambda data: zlib.decompress(data, 31),
    _CODEC + "BZip2Codec": bz2.decompress,
    _CODEC + "SnappyCodec": _snappy,
}


def _vint(data: bytes, position: int) -> tuple[int, int]:
    """Return an integer of variable length, and the position after it."""
    first = data[position] - 256 if data[position] > 127 else data[position]
    if first >= -112:
        return first, position + 1
    negative = first < -120
    count = -(first + 120) if negative else -(first + 112)
    after = position + 1 + count
    if after > len(data):
        raise IndexError
    value = int.from_bytes(data[position + 1 : after], "big")
    return (~value if negative else value), after


def _text(data: bytes) -> str:
    length, start = _vint(data, 0)
    if not 0 <= length <= len(data) - start:
        raise IndexError
    return data[start : start + length].decode("utf-8")


def _bytes(data: bytes) -> bytes:
    (length,) = struct.unpack_from(">i", data)
    if not 0 <= length <= len(data) - 4:
        raise IndexError
    return data[4 : 4 + length]


def _number(layout: str) -> Callable[[bytes], Any]:
    return lambda data: struct.unpack(layout, data)[0]


_TYPES: dict[str, Callable[[bytes], Any]] = {
    _IO + "Text": _text,
    _IO + "BytesWritable": _bytes,
    _IO + "ByteWritable": _number(">b"),
    _IO + "ShortWritable": _number(">h"),
    _IO + "IntWritable": _number(">i"),
    _IO + "LongWritable": _number(">q"),
    _IO + "VIntWritable": lambda data: _vint(data, 0)[0],
    _IO + "VLongWritable": lambda data: _vint(data, 0)[0],
    _IO + "FloatWritable": _number(">f"),
    _IO + "DoubleWritable": _number(">d"),
    _IO + "BooleanWritable": lambda data: data != b"\0",
    _IO + "NullWritable": lambda data: None,
}
#: What a value or a compressed part raises if it is damaged.
_VALUE_ERRORS = (IndexError, struct.error, UnicodeDecodeError, zlib.error, OSError, ValueError)


class _Header(NamedTuple):
    key: Callable[[bytes], Any]
    value: Callable[[bytes], Any]
    blocks: bool
    decompress: Callable[[bytes], bytes] | None
    mark: bytes
    size: int


class SequenceFileFormat(Format):
    """SequenceFiles; the columns are ``key`` and ``value``.

    Classes: Text (str), BytesWritable (bytes), the numbers of org.apache.hadoop.io (int, float),
    BooleanWritable (bool) and NullWritable (None).
    """

    name = "sequencefile"

    def splits(self, file: FileEntry, unit: int) -> list[Split]:
        """Divide a file at ranges of bytes; a range has what follows a sync mark in it."""
        return [Split(file, start, end, end - start) for start, end in ranges(file.size, unit)]

    def read(self, split: Split) -> Iterator[Batch]:
        """Yield the records after sync marks that start in a range of bytes."""
        collector = Collector(self.reading.batch_size, _batch)
        with open_file(split.file) as source:
            reader = _Reader(split.file, source)
            for key, value, size in reader.records(split.start, split.end):
                batch = collector.add((key, value), size)
                if batch is not None:
                    yield batch
        rest = collector.rest()
        if rest is not None:
            yield rest


def _batch(records: list[tuple[Any, Any]]) -> Batch:
    return Batch({"key": [key for key, _value in records], "value": [it for _key, it in records]})


class _Reader:
    """Records of an open file."""

    def __init__(self, file: FileEntry, source: BinaryIO) -> None:
        self._file, self._source = file, source
        self._position = 0
        try:
            self._header = self._read_header()
        except DataError:
            raise
        except (_DamageError, *_VALUE_ERRORS) as exc:
            raise damaged(file, "its header", _reason(exc)) from exc

    def records(self, start: int, end: int | None) -> Iterator[tuple[Any, Any, int]]:
        """Yield key, value and size of the records of a range."""
        if start:
            found = find_marker(self._source, _ESCAPE + self._header.mark, start)
            if found is None or (end is not None and found >= end):
                return
            self._move(found)
        try:
            yield from self._from_here(end)
        except DataError:
            raise
        except (_DamageError, *_VALUE_ERRORS) as exc:
            raise damaged(self._file, f"byte {self._position}", _reason(exc)) from exc

    def _from_here(self, end: int | None) -> Iterator[tuple[Any, Any, int]]:
        header = self._header
        while self._position < self._file.size:
            here = self._position
            data = self._take(4)
            if data == _ESCAPE:
                if self._take(_MARK_BYTES) != header.mark:
                    raise _DamageError(_("there is no sync mark"))
                if end is not None and here >= end:
                    return
                if header.blocks:
                    yield from self._block()
                continue
            if header.blocks:
                raise _DamageError(_("a block has no sync mark"))
            yield self._record(struct.unpack(">i", data)[0])

    def _record(self, length: int) -> tuple[Any, Any, int]:
        (key_length,) = struct.unpack(">i", self._take(4))
        if not 0 <= key_length <= length:
            raise _DamageError(_("the lengths of a record are impossible"))
        data = self._take(length)
        value = data[key_length:]
        if self._header.decompress:
            value = self._header.decompress(value)
        return self._header.key(data[:key_length]), self._header.value(value), length

    def _block(self) -> Iterator[tuple[Any, Any, int]]:
        count = self._take_vint()
        key_lengths, keys, value_lengths, values = (self._buffer() for _n in range(4))
        at_key = at_value = key_start = value_start = 0
        for _n in range(count):
            length, at_key = _vint(key_lengths, at_key)
            key_end = key_start + length
            length, at_value = _vint(value_lengths, at_value)
            value_end = value_start + length
            if key_end > len(keys) or value_end > len(values):
                raise _DamageError(_("the lengths of a block are impossible"))
            key, value = keys[key_start:key_end], values[value_start:value_end]
            yield self._header.key(key), self._header.value(value), len(key) + len(value)
            key_start, value_start = key_end, value_end

    def _buffer(self) -> bytes:
        data = self._take(self._take_vint())
        decompress = self._header.decompress
        return decompress(data) if decompress else data

    def _read_header(self) -> _Header:
        if self._take(3) != b"SEQ":
            raise _DamageError(_("it is no SequenceFile"))
        version = self._take(1)[0]
        if version != 6:
            raise _DamageError(_("its version is {version}, not 6").format(version=version))
        classes = [self._take_text() for _n in range(2)]
        compressed, blocks = (self._take(1) != b"\0" for _n in range(2))
        codec = self._take_text() if compressed else ""
        (count,) = struct.unpack(">i", self._take(4))
        for _n in range(2 * count):
            self._take_text()
        mark = self._take(_MARK_BYTES)
        for name in classes:
            if name not in _TYPES:
                raise DataError(
                    _("{file} has values of the class {name}; the classes are {known}.").format(
                        file=self._file.uri,
                        name=name,
                        known=", ".join(known[len(_IO) :] for known in _TYPES),
                    )
                )
        if compressed and codec not in _CODECS:
            raise DataError(
                _("{file} is compressed by {codec}; the codecs are {known}.").format(
                    file=self._file.uri,
                    codec=codec.replace(_CODEC, ""),
                    known=", ".join(known[len(_CODEC) :] for known in _CODECS),
                )
            )
        decompress = _CODECS[codec] if compressed else None
        key, value = (_TYPES[name] for name in classes)
        return _Header(key, value, blocks, decompress, mark, self._position)

    def _move(self, position: int) -> None:
        self._source.seek(position)
        self._position = position

    def _take(self, count: int) -> bytes:
        if not 0 <= count <= self._file.size - self._position:
            raise _DamageError(_("it ends within a record"))
        data = self._source.read(count)
        if len(data) < count:
            raise _DamageError(_("it ends within a record"))
        self._position += count
        return data

    def _take_vint(self) -> int:
        data = self._take(1)
        first = data[0] - 256 if data[0] > 127 else data[0]
        if first < -112:
            data += self._take(-(first + 120) if first < -120 else -(first + 112))
        return _vint(data, 0)[0]

    def _take_text(self) -> str:
        length = self._take_vint()
        if length > _LONGEST_NAME:
            raise _DamageError(_("a name is too long"))
        return self._take(length).decode("utf-8")


def _reason(error: BaseException) -> str:
    if isinstance(error, (IndexError, struct.error)):
        return _("a value is incomplete")
    return str(error)
