"""Avro object container files, through fastavro: divided at blocks.

Format: https://avro.apache.org/docs/1.12.0/specification/#object-container-files.
"""

from __future__ import annotations

import io
from typing import Any, BinaryIO, Iterator, cast

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

_MARK_BYTES = 16


class AvroFormat(Format):
    """Avro files; a column for each field of the records.

    The codecs are those of fastavro: null, deflate and bzip2; snappy and others where the packages
    that fastavro uses for them are installed.
    """

    name = "avro"
    _schema: Any = None

    def splits(self, file: FileEntry, unit: int) -> list[Split]:
        """Divide a file at ranges of bytes; a range has the blocks after a sync mark in it."""
        return [Split(file, start, end, end - start) for start, end in ranges(file.size, unit)]

    def read(self, split: Split) -> Iterator[Batch]:
        """Yield the records of the blocks after sync marks that start in a range of bytes."""
        file = split.file
        self._compare(file)
        avro = require("fastavro", "The format avro")
        collector = Collector(self.reading.batch_size, self._batch)
        with open_file(file) as source:
            header, mark = self._header(file, source)
            # The mark of the header counts as one at the start of the file.
            start = len(header)
            if split.start:
                found = find_marker(source, mark, max(split.start, len(header)))
                if found is None or (split.end is not None and found >= split.end):
                    return
                start = found + _MARK_BYTES
            end = file.size
            if split.end is not None and split.end < file.size:
                found = find_marker(source, mark, max(split.end, len(header)))
                end = file.size if found is None else found + _MARK_BYTES
            part = _Part(header, source, start, end)
            average = max(1, (end - start) // 4096)
            try:
                for record in avro.reader(io.BufferedReader(part, 1 << 18)):
                    batch = collector.add(record, average)
                    if batch is not None:
                        yield batch
            except DataError:
                raise
            except Exception as exc:
                # fastavro raises what the damaged bytes lead to: no list of types is complete.
                raise damaged(file, f"byte {part.position}", _reason(exc)) from exc
        rest = collector.rest()
        if rest is not None:
            yield rest

    def _batch(self, records: list[Any]) -> Batch:
        if not isinstance(records[0], dict):
            return Batch({"value": records})
        names = self.reading.columns or tuple(records[0])
        for name in names:
            if name not in records[0]:
                raise DataError(
                    _("There is no column {name}; the columns are {names}.").format(
                        name=name, names=", ".join(records[0])
                    )
                )
        return Batch({name: [record[name] for record in records] for name in names})

    def _header(self, file: FileEntry, source: BinaryIO) -> tuple[bytes, bytes]:
        """Return the header with its mark, and the mark."""
        avro = require("fastavro", "The format avro")
        try:
            if source.read(4) != b"Obj\x01":
                raise ValueError(_("it is no Avro file"))
            source.seek(0)
            reader = avro.reader(source)
            mark = cast("bytes", reader._header["sync"])
            fields = reader.writer_schema
        except DataError:
            raise
        except Exception as exc:
            raise damaged(file, "its header", _reason(exc)) from exc
        if self._schema is None:
            self._schema = _field_types(fields)
        source.seek(0)
        end = find_marker(source, mark, 0)
        assert end is not None
        source.seek(0)
        return source.read(end + _MARK_BYTES), mark

    def _compare(self, file: FileEntry) -> None:
        """Compare the fields of a file with those of the first one."""
        first = self.files[0]
        if self._schema is None:
            with open_file(first) as source:
                self._header(first, source)
        if file.uri == first.uri:
            return
        avro = require("fastavro", "The format avro")
        with open_file(file) as source:
            self._header(file, source)
            source.seek(0)
            found = _field_types(avro.reader(source).writer_schema)
        for name in (*self._schema, *found):
            wanted = self.reading.columns is None or name in self.reading.columns
            left, right = self._schema.get(name), found.get(name)
            if wanted and left != right:
                raise DataError(
                    _("The column {column} is {left} in {first} and {right} in {file}.").format(
                        column=name,
                        left=left or _("missing"),
                        first=first.uri,
                        right=right or _("missing"),
                        file=file.uri,
                    )
                )


def _field_types(schema: Any) -> dict[str, str]:
    if not isinstance(schema, dict) or schema.get("type") != "record":
        return {"value": str(schema)}
    return {field["name"]: str(field["type"]) for field in schema["fields"]}


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__


class _Part(io.RawIOBase):
    """A header, and then a range of a file's bytes."""

    def __init__(self, header: bytes, source: BinaryIO, start: int, end: int) -> None:
        super().__init__()
        self._header, self._source, self._end = header, source, end
        self.position = start
        source.seek(start)

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer; return the number of bytes."""
        view = memoryview(buffer).cast("B")
        if self._header:
            data = self._header[: len(view)]
            self._header = self._header[len(data) :]
        else:
            data = self._source.read(min(len(view), self._end - self.position))
            self.position += len(data)
        view[: len(data)] = data
        return len(data)
