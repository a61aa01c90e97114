"""ORC, through pyarrow: divided at stripes.

Format: Apache ORC, https://orc.apache.org/specification/.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any, Iterator, Sequence

from submarine_data.batches import ArrowBatch, Batch
from submarine_data.errors import require
from submarine_data.file_systems import FileEntry, local_path
from submarine_data.formats.arrow_schemas import columns_to_read
from submarine_data.formats.base import (
    Format,
    Reading,
    Split,
    damaged,
    is_local,
    open_file,
    store_error,
)


class OrcFormat(Format):
    """ORC files. A stripe is read as a whole: its size bounds the memory."""

    name = "orc"

    def __init__(self, files: Sequence[FileEntry], reading: Reading) -> None:
        super().__init__(files, reading)
        self._reference: Any = None

    def splits(self, file: FileEntry, unit: int) -> list[Split]:
        """Divide a file larger than ``unit`` at its stripes."""
        if file.size <= unit:
            return [Split(file, 0, None, file.size)]
        with self._opened(file) as (opened, _source):
            count = max(1, opened.nstripes)
            return [Split(file, i, i + 1, file.size // count) for i in range(opened.nstripes)]

    def read(self, split: Split) -> Iterator[Batch]:
        """Yield the records of stripes ``start`` to ``end`` - 1."""
        with self._opened(split.file) as (opened, source):
            columns = self._columns(split.file, opened)
            end = opened.nstripes if split.end is None else split.end
            for stripe in range(split.start, end):
                try:
                    batch = opened.read_stripe(stripe, columns=columns)
                except _arrow_errors() as exc:
                    error = store_error(source, exc)
                    raise error or damaged(split.file, f"stripe {stripe}", exc) from exc
                yield ArrowBatch(batch.select(columns))

    @contextmanager
    def _opened(self, file: FileEntry) -> Iterator[tuple[Any, Any]]:
        """Open a file; yield it, and what it is read from."""
        orc = require("pyarrow.orc", "The format orc")
        arrow = require("pyarrow", "The format orc")
        source = local_path(file.uri) if is_local(file) else open_file(file)
        kind = arrow.OSFile if is_local(file) else arrow.PythonFile
        with kind(source, mode="r") as opened:
            try:
                found = orc.ORCFile(opened)
            except _arrow_errors() as exc:
                raise store_error(source, exc) or damaged(file, "its footer", exc) from exc
            yield found, source

    def _columns(self, file: FileEntry, opened: Any) -> list[str]:
        schema, first = opened.schema, self.files[0]
        if self._reference is None:
            if file.uri == first.uri:
                self._reference = schema
            else:
                with self._opened(first) as (reference, _source):
                    self._reference = reference.schema
        return columns_to_read(first, self._reference, file, schema, self.reading.columns)


def _arrow_errors() -> tuple[type[BaseException], ...]:
    arrow = require("pyarrow", "The format orc")
    return (arrow.ArrowException, OSError, EOFError)
