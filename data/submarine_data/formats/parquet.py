"""Parquet, through pyarrow: divided at row groups, read in batches of records.

Format: Apache Parquet, https://parquet.apache.org/docs/file-format/.
"""

from __future__ import annotations

from contextlib import contextmanager
from itertools import groupby, zip_longest
from typing import Any, Iterator, NamedTuple, Sequence

from submarine_data.batches import ArrowBatch, Batch
from submarine_data.errors import DataError, require
from submarine_data.file_systems import FileEntry, local_path
from submarine_data.formats.arrow_schemas import columns_to_read
from submarine_data.formats.base import (
    Format,
    Reading,
    Split,
    damaged,
    is_local,
    names_file,
    open_file,
    slow_jumps,
    store_error,
)
from submarine_data.predicates import may_match
from submarine_data.reading_ahead import PIECE, Range

#: Row groups with more bytes than this are read page by page, smaller ones column by column.
_LARGE = 32 << 20
#: Bytes and records that are decoded at once, unless a batch has more.
_DECODED, _MOST_RECORDS = 4 << 20, 1 << 16
#: Buffer of a column of a large row group. Pages are larger, as a rule, and read without it.
_BUFFER = 1 << 16
#: Row groups up to this size (the usual block of HDFS, and a bit), or some smaller ones together,
#: are read in the order of the file where jumps are slow. Their pieces are small, because memory is
#: freed piece by piece.
_READ_IN_ORDER, _SMALL_PIECE = 136 << 20, 1 << 20
#: Memory for the pieces of larger row groups, and of all large ones where jumps are fast. Two
#: thirds of it are for those in use.
_KEPT = 96 << 20


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
        with self._opened(file) as (opened, _source):
            columns = self._columns(file, opened)
            groups = self._matching(opened, range(opened.metadata.num_row_groups))
            return [Split(file, i, i + 1, _bytes(opened.metadata, i, columns)) for i in groups]

    def read_all(self, splits: Sequence[Split]) -> Iterator[tuple[int, Batch]]:
        """See ``Format``; large row groups are read in advance also from a file's next part."""
        numbered = enumerate(splits)
        for _uri, parts in groupby(numbered, lambda part: part[1].file.uri):
            yield from self._read_parts(list(parts))

    def _read_parts(self, parts: list[tuple[int, Split]]) -> Iterator[tuple[int, Batch]]:
        """Yield the records of parts of a file."""
        file = parts[0][1].file
        with names_file(file), self._opened(file) as (opened, source):
            columns = self._columns(file, opened)
            metadata = opened.metadata
            found = []
            for _number, (_file, start, end, _weight) in parts:
                every = range(start, metadata.num_row_groups if end is None else end)
                found.append(self._matching(opened, every))
            sizes = [_bytes(metadata, group, columns) for groups in found for group in groups]
            large = max(sizes, default=0) > _LARGE
            ahead = not is_local(file) and (large or (slow_jumps(file) and sum(sizes) > _LARGE))
            if large or ahead:
                unbuffered = source if isinstance(source, str) else source.raw
                # Page by page if they are large: with little memory.
                opened = self._parquet_file(unbuffered, metadata, _BUFFER if large else 0)
            plans = (
                _plan_of([_chunks(metadata, group, columns) for group in groups], slow_jumps(file))
                for groups in found
            )
            plan = next(plans, None) if ahead else None
            for (number, _split), groups in zip(parts, found):
                if plan is not None:
                    following = next(plans, None)
                    source.raw.expect(*(plan.then(following) if following else plan))
                    plan = following
                done = 0
                try:
                    for batch in self._batches(opened, groups, columns, threads=not ahead):
                        done += len(batch)
                        yield number, batch
                except _arrow_errors() as exc:
                    error = store_error(source, exc)
                    raise error or self._damaged(file, opened, groups, columns, done, exc) from exc

    def place(self, split: Split, record: int) -> str:
        """Return the row group of a record of a part; exact if no conditions are given."""
        try:
            with self._opened(split.file) as (opened, _source):
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

    def _batches(
        self, opened: Any, groups: list[int], columns: list[str], *, threads: bool = True
    ) -> Iterator[Batch]:
        if not groups:
            return
        size = _records(opened.metadata, groups[0], columns, self.reading.batch_size)
        # Threads that decode pages wait for each other where Python reads the file: page by page
        # that cost a third more CPU.
        for batch in opened.iter_batches(
            batch_size=size, row_groups=groups, columns=columns, use_threads=threads
        ):
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
    def _opened(self, file: FileEntry) -> Iterator[tuple[Any, Any]]:
        """Open a file. Yields it, and what it is read from."""
        parquet = require("pyarrow.parquet", "The format parquet")
        source = local_path(file.uri) if is_local(file) else open_file(file)
        try:
            opened = self._parquet_file(source, parquet.read_metadata(source))
        except _arrow_errors() as exc:
            if not isinstance(source, str):
                source.close()
            raise store_error(source, exc) or damaged(file, "its footer", exc) from exc
        try:
            yield opened, source
        finally:
            opened.close(force=True)

    def _parquet_file(self, source: Any, metadata: Any, buffer_size: int = 0) -> Any:
        """Open a file whose footer was read; without buffers each column is read as a whole."""
        return require("pyarrow.parquet", "The format parquet").ParquetFile(
            source,
            metadata=metadata,
            buffer_size=buffer_size,
            pre_buffer=False,
            page_checksum_verification=self._checksums,
        )

    def _columns(self, file: FileEntry, opened: Any) -> list[str]:
        schema = opened.schema_arrow
        first = self.files[0]
        if self._reference is None:
            if file.uri == first.uri:
                self._reference = schema
            else:
                with self._opened(first) as (reference, _source):
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


def _selected(metadata: Any, group: int, columns: list[str]) -> list[Any]:
    """Return the metadata of the selected columns of a row group, those in structures too."""
    wanted = set(columns)
    row_group = metadata.row_group(group)
    chunks = (row_group.column(i) for i in range(metadata.num_columns))
    return [chunk for chunk in chunks if chunk.path_in_schema.partition(".")[0] in wanted]


def _bytes(metadata: Any, group: int, columns: list[str]) -> int:
    """Return the bytes of the selected columns of a row group."""
    return sum(chunk.total_compressed_size for chunk in _selected(metadata, group, columns))


def _chunks(metadata: Any, group: int, columns: list[str]) -> list[Range]:
    """Return where the selected columns of a row group are in the file."""
    found = []
    for chunk in _selected(metadata, group, columns):
        start = chunk.data_page_offset
        if chunk.has_dictionary_page and 0 < chunk.dictionary_page_offset < start:
            start = chunk.dictionary_page_offset
        found.append(Range(start, start + chunk.total_compressed_size))
    return found


class _Plan(NamedTuple):
    """The arguments of ``ReadAheadFile.expect``."""

    expected: list[Range]
    kept: int
    beside: list[Range]

    def then(self, other: _Plan) -> _Plan:
        """Return the plan of this part and of the one after it."""
        kept = max(self.kept, other.kept)
        return _Plan(self.expected + other.expected, kept, self.beside + other.beside)


def _plan_of(groups: list[list[Range]], in_order: bool) -> _Plan:
    """Return how a part of a file is read ahead.

    Parameters
    ----------
    groups
        Where the columns of each row group are in the file.
    in_order
        Whether to read in the order of the file, as far as memory suffices: each half of a large
        row group, or of several small ones, by its own connection, because an answer takes one core
        of its server.
    """
    if not in_order or max(map(_length, groups), default=0) > _READ_IN_ORDER:
        return _Plan([one for chunks in groups for one in _in_turns(chunks)], _KEPT, [])
    expected: list[Range] = []
    beside: list[Range] = []
    kept = 0
    for chunks in _joined(groups):
        pieces = _parts(sorted(chunks), _SMALL_PIECE)
        middle = (len(pieces) + 1) // 2
        beside += pieces[middle:]
        for both in zip_longest(pieces[:middle], pieces[middle:]):
            expected += [one for one in both if one is not None]
        kept = max(kept, _length(chunks))
    return _Plan(expected, kept, beside)


def _length(chunks: list[Range]) -> int:
    return sum(end - start for start, end in chunks)


def _joined(groups: list[list[Range]]) -> Iterator[list[Range]]:
    """Join the columns of consecutive row groups up to ``_READ_IN_ORDER`` bytes."""
    joined: list[Range] = []
    size = 0
    for chunks in groups:
        length = _length(chunks)
        if size + length > _READ_IN_ORDER:
            yield joined
            joined, size = [], 0
        joined.extend(chunks)
        size += length
    yield joined


def _parts(chunks: list[Range], piece: int) -> list[Range]:
    """Divide columns to equal parts of at most ``piece`` bytes."""
    found = []
    for start, end in chunks:
        count = -(-(end - start) // piece)
        bounds = [start + (end - start) * number // count for number in range(count + 1)]
        found += [Range(*bounds[number : number + 2]) for number in range(count)]
    return found


def _in_turns(chunks: list[Range]) -> list[Range]:
    """Divide the columns of a row group to parts, in the order in which they are used.

    The columns advance together: the parts of a column begin at equal distances in the records.
    """
    piece = max(_BUFFER, min(PIECE, _KEPT * 2 // 3 // len(chunks)))
    order = []
    for chunk in chunks:
        parts = _parts([chunk], piece)
        order += [(number / len(parts), part) for number, part in enumerate(parts)]
    return [part for _share, part in sorted(order)]


def _records(metadata: Any, group: int, columns: list[str], batch_size: int) -> int:
    """Return how many records to decode at once: a multiple of the batch size.

    A batch that begins in one decoded unit and ends in the next is copied. After the first part of
    a file whose records are no multiple of the batch size, each unit ends with such a batch: units
    of several batches make them few. The size is that of encoded values, and strings may take more
    memory, so the records are limited too.
    """
    chunks = _selected(metadata, group, columns)
    size = sum(chunk.total_uncompressed_size for chunk in chunks)
    fitting = int(_DECODED * metadata.row_group(group).num_rows // max(1, size))
    return max(1, min(fitting, _MOST_RECORDS) // batch_size) * batch_size


def _arrow_errors() -> tuple[type[BaseException], ...]:
    arrow = require("pyarrow", "The format parquet")
    return (arrow.ArrowException, OSError, EOFError)
