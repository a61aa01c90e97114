"""Parquet, through pyarrow: divided at row groups, read in batches of records.

Format: Apache Parquet, https://parquet.apache.org/docs/file-format/.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any, Iterator, Sequence

from submarine_data.batches import ArrowBatch, Batch
from submarine_data.errors import DataError, require
from submarine_data.file_systems import FileEntry, local_path
from submarine_data.formats.arrow_schemas import columns_to_read
from submarine_data.formats.base import (
    CHUNK,
    Format,
    Reading,
    Split,
    damaged,
    is_local,
    open_file,
    store_error,
)
from submarine_data.predicates import may_match

#: Row groups with more bytes than this are read through small buffers, not column by column.
_LARGE_LOCAL = 32 << 20
#: The same for other files, where a request is slow.
_LARGE_REMOTE = 160 << 20
#: Records that are decoded at once, unless a batch has more.
_MOST_RECORDS = 8192
#: Bytes of the buffers of all columns of a large row group.
_BUFFERS = 48 << 20


class ParquetFormat(Format):
    """Parquet files.

    Row groups whose statistics exclude the conditions are not read.

    Parameters
    ----------
    files, reading
        See ``Format``.
    checksums
        Verify the checksums of pages, where the writer has stored them.
    """

    name = "parquet"

    def __init__(
        self, files: Sequence[FileEntry], reading: Reading, *, checksums: bool = False
    ) -> None:
        super().__init__(files, reading)
        self._checksums = checksums
        self._reference: Any = None

    def splits(self, file: FileEntry, unit: int) -> list[Split]:
        """Divide a file larger than ``unit`` at its row groups."""
        if file.size <= unit:
            return [Split(file, 0, None, file.size)]
        with self._opened(file, (0, 0)) as (opened, _source):
            columns = self._columns(file, opened)
            groups = self._matching(opened, range(opened.metadata.num_row_groups))
            return [Split(file, i, i + 1, _bytes(opened.metadata, i, columns)) for i in groups]

    def read(self, split: Split) -> Iterator[Batch]:
        """Yield the records of row groups ``start`` to ``end`` - 1."""
        with self._opened(split.file, (split.start, split.end)) as (opened, source):
            columns = self._columns(split.file, opened)
            end = opened.metadata.num_row_groups if split.end is None else split.end
            groups = self._matching(opened, range(split.start, end))
            done = 0
            try:
                for batch in self._batches(opened, groups, columns):
                    done += len(batch)
                    yield batch
            except _arrow_errors() as exc:
                error = store_error(source, exc)
                raise error or self._damaged(
                    split.file, opened, groups, columns, done, exc
                ) from exc

    def place(self, split: Split, record: int) -> str:
        """Return the row group of a record of a part; exact if no conditions are given."""
        try:
            with self._opened(split.file, (split.start, split.end)) as (opened, _source):
                metadata = opened.metadata
                end = metadata.num_row_groups if split.end is None else split.end
                for group in range(split.start, end):
                    count = metadata.row_group(group).num_rows
                    if record < count:
                        return f"row group {group}"
                    record -= count
        except DataError:
            pass  # The file itself is the place.
        return ""

    def _batches(self, opened: Any, groups: list[int], columns: list[str]) -> Iterator[Batch]:
        if not groups:
            return
        size = _records(opened.metadata, groups[0], columns, self.reading.batch_size)
        for batch in opened.iter_batches(batch_size=size, row_groups=groups, columns=columns):
            yield ArrowBatch(batch.select(columns))

    def _damaged(
        self,
        file: FileEntry,
        opened: Any,
        groups: list[int],
        columns: list[str],
        done: int,
        reason: BaseException,
    ) -> DataError:
        """Find the damaged row group: that of the last record, or one after it."""
        for group in groups:
            count = opened.metadata.row_group(group).num_rows
            if done >= count:
                done -= count
                continue
            try:
                for _batch in self._batches(opened, [group], columns):
                    pass
            except _arrow_errors() as exc:
                return damaged(file, f"row group {group}", exc)
            done = 0
        return damaged(file, f"row groups {groups[0]} to {groups[-1]}", reason)

    @contextmanager
    def _opened(self, file: FileEntry, groups: tuple[int, int | None]) -> Iterator[tuple[Any, Any]]:
        """Open a file of which row groups are read: the first one, and the one after the last.

        Yields it, and what it is read from.
        """
        parquet = require("pyarrow.parquet", "The format parquet")
        source = local_path(file.uri) if is_local(file) else open_file(file)
        try:
            metadata = parquet.read_metadata(source)
            buffer = _buffer_size(metadata, groups, is_local(file))
            opened = parquet.ParquetFile(
                source,
                metadata=metadata,
                buffer_size=buffer,
                pre_buffer=False,
                page_checksum_verification=self._checksums,
            )
        except _arrow_errors() as exc:
            if not isinstance(source, str):
                source.close()
            raise store_error(source, exc) or damaged(file, "its footer", exc) from exc
        try:
            yield opened, source
        finally:
            opened.close(force=True)

    def _columns(self, file: FileEntry, opened: Any) -> list[str]:
        schema = opened.schema_arrow
        first = self.files[0]
        if self._reference is None:
            if file.uri == first.uri:
                self._reference = schema
            else:
                with self._opened(first, (0, 0)) as (reference, _source):
                    self._reference = reference.schema_arrow
        return columns_to_read(first, self._reference, file, schema, self.reading.columns)

    def _matching(self, opened: Any, groups: Sequence[int]) -> list[int]:
        conditions = [c for c in self.reading.conditions if "." not in c.column]
        if not conditions:
            return list(groups)
        metadata = opened.metadata
        found = []
        for group in groups:
            row_group = metadata.row_group(group)
            ranges = {}
            for i in range(metadata.num_columns):
                chunk = row_group.column(i)
                if chunk.is_stats_set and chunk.statistics.has_min_max:
                    ranges[chunk.path_in_schema] = (chunk.statistics.min, chunk.statistics.max)
            if all(
                may_match(condition, *ranges[condition.column])
                for condition in conditions
                if condition.column in ranges
            ):
                found.append(group)
        return found


def _bytes(metadata: Any, group: int, columns: list[str]) -> int:
    """Return the bytes of the selected columns of a row group."""
    wanted = set(columns)
    row_group = metadata.row_group(group)
    chunks = (row_group.column(i) for i in range(metadata.num_columns))
    return sum(
        chunk.total_compressed_size
        for chunk in chunks
        if chunk.path_in_schema.partition(".")[0] in wanted
    )


def _records(metadata: Any, group: int, columns: list[str], batch_size: int) -> int:
    """Return how many records to decode at once: a multiple of the batch size of about 1 MiB.

    pyarrow's cost of a batch is that of some thousand values. The size is that of encoded values,
    and strings may take more memory, so the records are limited too.
    """
    wanted = set(columns)
    row_group = metadata.row_group(group)
    chunks = (row_group.column(i) for i in range(metadata.num_columns))
    size = sum(
        chunk.total_uncompressed_size
        for chunk in chunks
        if chunk.path_in_schema.partition(".")[0] in wanted
    )
    fitting = int(CHUNK * row_group.num_rows // max(1, size))
    return max(1, min(fitting, _MOST_RECORDS) // batch_size) * batch_size


def _buffer_size(metadata: Any, groups: tuple[int, int | None], local: bool) -> int:
    """Return the bytes of a column's buffer; 0 reads the part of each column at once."""
    most, count = (_LARGE_LOCAL if local else _LARGE_REMOTE), metadata.num_columns
    first, end = groups
    for group in range(first, metadata.num_row_groups if end is None else end):
        row_group = metadata.row_group(group)
        # The size of the row group itself is that before compression.
        if row_group.total_byte_size > most:
            size = sum(row_group.column(i).total_compressed_size for i in range(count))
            if size > most:
                return max(1 << 16, min(4 << 20, _BUFFERS // int(count)))
    return 0


def _arrow_errors() -> tuple[type[BaseException], ...]:
    arrow = require("pyarrow", "The format parquet")
    return (arrow.ArrowException, OSError, EOFError)
