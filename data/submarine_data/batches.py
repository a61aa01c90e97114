"""Batches of records: columns of equal length, as lists of Python values or as Arrow arrays."""

from __future__ import annotations

import sys
from typing import Any, Iterator, Mapping, Sequence

from submarine_data.errors import DataError, require
from submarine_runtime.translation import _


class Batch:
    """Records with named columns of Python values.

    Parameters
    ----------
    columns
        Lists of equal length by name: numbers, strings, bytes, None, lists or arrays.
    """

    def __init__(self, columns: Mapping[str, Sequence[Any]]) -> None:
        self._columns = {name: list(values) for name, values in columns.items()}

    def __len__(self) -> int:
        """Return the number of records."""
        return len(next(iter(self._columns.values()), ()))

    @property
    def names(self) -> list[str]:
        """Names of the columns, in order."""
        return list(self._columns)

    @property
    def nbytes(self) -> int:
        """Memory of the values in bytes, estimated from the first 16 records."""
        sample = min(16, len(self)) or 1
        total = sum(
            _size_of(value) for values in self._columns.values() for value in values[:sample]
        )
        return total * len(self) // sample

    def column(self, name: str) -> list[Any]:
        """Return a column as a list of Python values, one for each record.

        Parameters
        ----------
        name
            One of ``names``.

        Raises
        ------
        DataError
            If there is no such column.
        """
        try:
            return self._columns[name]
        except KeyError:
            raise no_column(name, self.names) from None

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield each record as a dict of Python values by column."""
        names = self.names
        columns = [self.column(name) for name in names]
        for values in zip(*columns):
            yield dict(zip(names, values))

    def slice(self, start: int, length: int) -> Batch:
        """Return the records from ``start`` on (from 0), at most ``length`` of them."""
        return Batch(
            {name: values[start : start + length] for name, values in self._columns.items()}
        )

    def take(self, positions: Sequence[int]) -> Batch:
        """Return the records at these positions, in this order."""
        return Batch(
            {name: [values[i] for i in positions] for name, values in self._columns.items()}
        )

    def select(self, names: Sequence[str]) -> Batch:
        """Return some of the columns, in the order of ``names``.

        Raises
        ------
        DataError
            If there is no such column.
        """
        return Batch({name: self.column(name) for name in names})

    def with_constants(self, values: Mapping[str, Any]) -> Batch:
        """Return the batch with more columns, each with one value in all records.

        Parameters
        ----------
        values
            Value by name of the column.
        """
        more = {name: [value] * len(self) for name, value in values.items()}
        return Batch({**self._columns, **more})

    def to_numpy(self) -> dict[str, Any]:
        """Return an array for each column.

        Returns
        -------
        dict
            Arrays of shape (records,) for numbers, truth values and strings (dtype object);
            (records, ...) where each value is a list or array of the same shape; else (records,)
            with dtype object. A missing number is NaN.

        Raises
        ------
        DataError
            If NumPy is not installed.
        """
        numpy = require("numpy", "to_numpy()")
        return {name: _array(numpy, self.column(name)) for name in self.names}

    def to_arrow(self) -> Any:
        """Return a ``pyarrow.RecordBatch`` with the same columns and number of rows.

        Raises
        ------
        DataError
            If pyarrow is not installed.
        """
        arrow = require("pyarrow", "to_arrow()")
        columns = []
        for name in self.names:
            values = [getattr(value, "tolist", lambda v=value: v)() for value in self.column(name)]
            columns.append(arrow.array(values))
        return arrow.RecordBatch.from_arrays(columns, names=self.names)


class ArrowBatch(Batch):
    """Records in a ``pyarrow.RecordBatch``; see ``Batch``."""

    def __init__(self, arrow: Any) -> None:
        self._arrow = arrow

    def __len__(self) -> int:
        """Return the number of records."""
        count: int = self._arrow.num_rows
        return count

    @property
    def names(self) -> list[str]:
        """Names of the columns, in order."""
        names: list[str] = self._arrow.schema.names
        return names

    @property
    def nbytes(self) -> int:
        """Memory of the arrays in bytes."""
        return int(self._arrow.nbytes)

    def column(self, name: str) -> list[Any]:
        """Return a column as a list of Python values."""
        values: list[Any] = self.arrow_column(name).to_pylist()
        return values

    def arrow_column(self, name: str) -> Any:
        """Return a column as a ``pyarrow.Array``."""
        position = self._arrow.schema.get_field_index(name)
        if position < 0:
            raise no_column(name, self.names)
        return self._arrow.column(position)

    def slice(self, start: int, length: int) -> Batch:
        """Return the records from ``start`` on, at most ``length``; no value is copied."""
        return ArrowBatch(self._arrow.slice(start, length))

    def take(self, positions: Sequence[int]) -> Batch:
        """Return the records at these positions, in this order."""
        arrow = require("pyarrow", "ArrowBatch")
        return ArrowBatch(self._arrow.take(arrow.array(positions, arrow.int64())))

    def filter(self, mask: Any) -> Batch:
        """Return the records where a boolean Arrow array is true."""
        return ArrowBatch(self._arrow.filter(mask))

    def select(self, names: Sequence[str]) -> Batch:
        """Return some of the columns, in this order."""
        for name in names:
            self.arrow_column(name)
        return ArrowBatch(self._arrow.select(list(names)))

    def with_constants(self, values: Mapping[str, Any]) -> Batch:
        """Return the batch with more columns, each with one value in all records."""
        arrow = require("pyarrow", "ArrowBatch")
        columns = list(self._arrow.columns)
        fields = list(self._arrow.schema)
        for name, value in values.items():
            kind = arrow.int64() if isinstance(value, int) else arrow.string()
            columns.append(arrow.repeat(arrow.scalar(value, kind), len(self)))
            fields.append(arrow.field(name, kind))
        return ArrowBatch(arrow.RecordBatch.from_arrays(columns, schema=arrow.schema(fields)))

    def to_numpy(self) -> dict[str, Any]:
        """Return an array for each column; see ``Batch.to_numpy``."""
        numpy = require("numpy", "to_numpy()")
        types = require("pyarrow", "to_numpy()").types
        found = {}
        for name in self.names:
            column = self.arrow_column(name)
            found[name] = _arrow_array(numpy, types, column)
        return found

    def to_arrow(self) -> Any:
        """Return the ``pyarrow.RecordBatch``."""
        return self._arrow


def concatenate(batches: Sequence[Batch]) -> Batch:
    """Join batches with the same columns."""
    if len(batches) == 1:
        return batches[0]
    if all(isinstance(batch, ArrowBatch) for batch in batches):
        arrow = require("pyarrow", "ArrowBatch")
        table = arrow.Table.from_batches([batch.to_arrow() for batch in batches])
        joined = table.combine_chunks().to_batches()
        if len(joined) == 1:
            return ArrowBatch(joined[0])
    names = batches[0].names
    for batch in batches:
        for name in batch.names:
            if name not in names:
                names.append(name)
    columns: dict[str, list[Any]] = {name: [] for name in names}
    for batch in batches:
        for name in names:
            known = name in batch.names
            columns[name].extend(batch.column(name) if known else [None] * len(batch))
    return Batch(columns)


def no_column(name: str, names: Sequence[str]) -> DataError:
    """Return the error about a column that is not there."""
    return DataError(
        _("There is no column {name}; the columns are {names}.").format(
            name=name, names=", ".join(names)
        )
    )


def _size_of(value: Any) -> int:
    if isinstance(value, (list, tuple)):
        return sum(map(_size_of, value[:1000])) + 64
    size = getattr(value, "nbytes", None)
    return size if isinstance(size, int) else sys.getsizeof(value)


def _array(numpy: Any, values: list[Any]) -> Any:
    kinds = {type(value) for value in values}
    if kinds <= {int, float, bool} and kinds:
        try:
            return numpy.asarray(values)
        except OverflowError:
            pass
    elif kinds <= {int, float, type(None)} and kinds - {type(None)}:
        return numpy.asarray([numpy.nan if value is None else value for value in values], float)
    elif not kinds & {str, bytes, type(None)} and not any(issubclass(k, dict) for k in kinds):
        rows = [numpy.asarray(value) for value in values]
        if rows and all(row.shape == rows[0].shape and row.dtype != object for row in rows):
            return numpy.stack(rows)
    found = numpy.empty(len(values), dtype=object)
    for i, value in enumerate(values):
        found[i] = value
    return found


def _arrow_array(numpy: Any, types: Any, column: Any) -> Any:
    kind = column.type
    if types.is_dictionary(kind):
        column, kind = column.dictionary_decode(), kind.value_type
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        flat = column.flatten()
        count = len(column)
        if column.null_count == 0 and count and len(flat) % count == 0:
            width = len(flat) // count
            fixed = types.is_fixed_size_list(kind) or _equal_lengths(numpy, column, width)
            primitive = types.is_primitive(kind.value_type) and flat.null_count == 0
            if fixed and primitive:
                return flat.to_numpy(zero_copy_only=False).reshape(count, width)
        return _array(numpy, column.to_pylist())
    if types.is_boolean(kind) and column.null_count:
        return _array(numpy, column.to_pylist())
    return column.to_numpy(zero_copy_only=False)


def _equal_lengths(numpy: Any, column: Any, width: int) -> bool:
    lengths = column.value_lengths().to_numpy(zero_copy_only=False)
    return bool((lengths == width).all())
