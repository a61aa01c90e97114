"""The files of parts: Parquet, with rows and metrics of the part in the footer."""

from __future__ import annotations

import hashlib
import json
import math
import os
from typing import Any, BinaryIO, Callable, Mapping, NamedTuple, Sequence

from submarine_data.batches import Batch
from submarine_data.errors import require
from submarine_data.prediction.errors import PredictionError
from submarine_runtime.translation import _

#: Key of the metadata of a part.
KEY = "submarine.prediction"
#: Bytes of results that become one row group.
_ROW_GROUP = 32 << 20
_BLOCK = 1 << 20


class PartResult(NamedTuple):
    """What a part contains.

    Parameters
    ----------
    name
        Of its file.
    rows, bytes
        Of the file; a part without rows has no file.
    sha256
        Of the file, hex; empty without a file.
    schema
        Columns and types, as text; empty without a file.
    metrics
        Sums over the rows, by name.
    """

    name: str
    rows: int = 0
    bytes: int = 0
    sha256: str = ""
    schema: str = ""
    metrics: Mapping[str, float] = {}


class PartWriter:
    """Write one part: first under a hidden name, then with one rename.

    Parameters
    ----------
    folder, name
        Place of the file.
    keys
        Columns of the input that are copied.
    """

    def __init__(self, folder: str, name: str, keys: Sequence[str] | None) -> None:
        self._arrow = require("pyarrow", "predict")
        self._parquet = require("pyarrow.parquet", "predict")
        if not hasattr(self._parquet.ParquetWriter, "add_key_value_metadata"):
            raise PredictionError(
                _("predict needs pyarrow 16 or newer, and this Python has {version}.").format(
                    version=self._arrow.__version__
                )
            )
        self._path, self._name, self._keys = os.path.join(folder, name), name, keys
        self._hidden = os.path.join(folder, f".{name}")
        self._writer: Any = None
        self._schema: Any = None
        self._waiting: list[Any] = []
        self._bytes = self._rows = 0
        self._sums: dict[str, list[float]] = {}

    def add(
        self,
        batch: Batch,
        columns: Mapping[str, Any],
        metrics: Mapping[str, float],
        where: Callable[[], str],
    ) -> None:
        """Add the rows of a batch with the columns of the result.

        Raises
        ------
        PredictionError
            If the columns are not those of the part's first batch.
        """
        copied = self._copied(batch)
        for name in columns:
            if name in copied:
                raise PredictionError(
                    _(
                        "predict returned a column {name}, which the input has too: rename it, or "
                        "leave {name} out of --keys."
                    ).format(name=name)
                )
        named = {**copied, **columns}
        table = self._arrow.table(named) if self._schema is None else self._cast(named, where)
        if self._schema is None:
            self._schema = table.schema.remove_metadata()
        self._waiting.append(table)
        self._rows += len(batch)
        self._bytes += table.nbytes
        for name, value in metrics.items():
            self._sums.setdefault(name, []).append(value)
        if self._bytes >= _ROW_GROUP:
            self._flush()

    def close(self) -> PartResult:
        """Publish the file; return what it contains."""
        metrics = {name: math.fsum(values) for name, values in sorted(self._sums.items())}
        if self._schema is None:
            return PartResult(self._name)
        self._flush()
        about = {"rows": self._rows, "metrics": metrics}
        self._writer.add_key_value_metadata({KEY: json.dumps(about, sort_keys=True)})
        self._writer.close()
        with open(self._hidden, "rb") as file:
            found = read_part(self._name, file)
            os.fsync(file.fileno())
        os.rename(self._hidden, self._path)
        return found

    def discard(self) -> None:
        """Remove the unfinished file."""
        if self._writer is not None:
            self._writer.close()
        if os.path.exists(self._hidden):
            os.unlink(self._hidden)

    def _copied(self, batch: Batch) -> dict[str, Any]:
        if self._keys is not None and not self._keys:
            return {}
        found = batch.to_arrow()
        names = found.schema.names if self._keys is None else self._keys
        return {name: found.column(found.schema.get_field_index(name)) for name in names}

    def _cast(self, named: Mapping[str, Any], where: Callable[[], str]) -> Any:
        names = self._schema.names
        if list(named) != names:
            raise PredictionError(
                _("predict returned the columns {found} for {where}, and {first} before.").format(
                    found=", ".join(named), where=where(), first=", ".join(names)
                )
            )
        columns = []
        for name in names:
            column, kind = named[name], self._schema.field(name).type
            try:
                columns.append(column if column.type == kind else column.cast(kind))
            except self._arrow.ArrowException as exc:
                raise PredictionError(
                    _("{name} is {found} for {where}, and {first} before.").format(
                        name=name, found=column.type, where=where(), first=kind
                    )
                ) from exc
        return self._arrow.table(columns, schema=self._schema)

    def _flush(self) -> None:
        if not self._waiting:
            return
        if self._writer is None:
            self._writer = self._parquet.ParquetWriter(self._hidden, self._schema)
        table = self._arrow.concat_tables(self._waiting).combine_chunks()
        self._writer.write_table(table, row_group_size=max(1, len(table)))
        self._waiting, self._bytes = [], 0


def read_part(name: str, source: BinaryIO) -> PartResult:
    """Return what the file of a part contains.

    Parameters
    ----------
    source
        The file, opened at its start.
    """
    parquet = require("pyarrow.parquet", "predict")
    digest, count = hashlib.sha256(), 0
    for block in iter(lambda: source.read(_BLOCK), b""):
        digest.update(block)
        count += len(block)
    source.seek(0)
    opened = parquet.ParquetFile(source)
    about = json.loads(opened.metadata.metadata[KEY.encode()])
    # With the types of Arrow, which differ from those that the columns of Parquet would have.
    schema = ", ".join(f"{field.name}: {field.type}" for field in opened.schema_arrow)
    return PartResult(name, about["rows"], count, digest.hexdigest(), schema, about["metrics"])
