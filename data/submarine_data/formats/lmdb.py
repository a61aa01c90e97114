"""LMDB, through the package lmdb: local files only, divided at entries.

Format: http://www.lmdb.tech/doc/. The files are opened read-only and without locks: no process may
write them meanwhile.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from itertools import islice
from typing import Any, Iterator

from submarine_data.batches import Batch
from submarine_data.errors import DataError, require
from submarine_data.file_systems import FileEntry, local_path
from submarine_data.formats.base import Collector, Format, Split, damaged, is_local
from submarine_data.sharding import ranges
from submarine_runtime.translation import _


class LmdbFormat(Format):
    """The main database of LMDB files, in the order of its keys: columns ``key`` and ``value``."""

    name = "lmdb"

    def splits(self, file: FileEntry, unit: int) -> list[Split]:
        """Divide a file at entries, as if all had the same size."""
        with self._opened(file) as environment:
            entries = environment.stat()["entries"]
        parts = ranges(entries, max(1, entries * unit // max(1, file.size)))
        return [Split(file, a, b, file.size * (b - a) // max(1, entries)) for a, b in parts]

    def read(self, split: Split) -> Iterator[Batch]:
        """Yield the entries ``start`` to ``end`` - 1; those before are passed by their keys."""
        module = require("lmdb", "The format lmdb")
        collector = Collector(self.reading.batch_size, _batch)
        number = split.start
        with self._opened(split.file) as environment, environment.begin() as transaction:
            try:
                cursor = transaction.cursor()
                if number:
                    keys = cursor.iternext(keys=True, values=False)
                    next(islice(keys, number, number + 1), None)
                items = cursor.iternext(keys=True, values=True)
                count = None if split.end is None else split.end - number
                for key, value in islice(items, count):
                    number += 1
                    batch = collector.add((key, value), len(key) + len(value))
                    if batch is not None:
                        yield batch
            except module.Error as exc:
                raise damaged(split.file, f"record {number}", exc) from exc
        rest = collector.rest()
        if rest is not None:
            yield rest

    @contextmanager
    def _opened(self, file: FileEntry) -> Iterator[Any]:
        module = require("lmdb", "The format lmdb")
        if not is_local(file):
            raise DataError(
                _("LMDB reads local files only: fetch {file} with --input first.").format(
                    file=file.uri
                )
            )
        path = local_path(file.uri)
        # The package maps the file: a page that is cut off would end the process by a signal.
        self._check_size(file, path)
        try:
            environment = module.open(path, subdir=False, readonly=True, lock=False)
        except module.Error as exc:
            raise damaged(file, "its header", exc) from exc
        with environment:
            yield environment

    def _check_size(self, file: FileEntry, path: str) -> None:
        """Compare the size with the pages that the two meta pages of the file count."""
        with open(path, "rb") as source:
            head = source.read(1 << 17)
        page = int.from_bytes(head[40:44], "little")
        last = -1
        for start in (0, page):
            meta = head[start + 16 : start + 152]
            if len(meta) == 136 and meta[:4] == b"\xde\xc0\xef\xbe":
                last = max(last, int.from_bytes(meta[120:128], "little"))
        if last < 0:
            raise damaged(file, "its header", _("it is no LMDB file"))
        if os.path.getsize(path) < page * 2:
            raise damaged(file, "its header", _("it is cut off"))
        if os.path.getsize(path) < page * (last + 1):
            raise damaged(file, f"byte {os.path.getsize(path)}", _("it is cut off"))


def _batch(records: list[tuple[bytes, bytes]]) -> Batch:
    return Batch({"key": [key for key, _value in records], "value": [it for _key, it in records]})
