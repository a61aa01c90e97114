"""CSV: divided at ranges of bytes where the caller says that it is safe.

Format: RFC 4180, with a delimiter and quote character of the caller's choice.
"""

from __future__ import annotations

import csv
from typing import Any, Callable, Iterator, Mapping, Sequence

from submarine_data.batches import Batch
from submarine_data.errors import DataError
from submarine_data.file_systems import FileEntry
from submarine_data.formats.base import Format, Reading, Split, damaged
from submarine_data.formats.text import byte_ranges, decoded, line_blocks
from submarine_runtime.translation import _

#: Records of the first file from which types are inferred.
_SAMPLE = 1000
_TRUTH = {"true": True, "false": False}


def _truth(text: str) -> bool:
    try:
        return _TRUTH[text.lower()]
    except KeyError:
        raise ValueError(text) from None


class CsvFormat(Format):
    """CSV files.

    A quoted value may contain line ends, so a file is divided only with
    ``newlines_in_values=False``; a value that does contain one is then an error. Types are inferred
    from the first 1,000 records of the first file: int, float (an empty value is NaN), bool
    (``true``, ``false``), else str.

    Parameters
    ----------
    files, reading
        See ``Format``.
    header
        The first line of each file names the columns; False: the columns are ``names``.
    names
        Names of the columns where there is no header [c0, c1, ...].
    types
        Types by column, instead of those that are inferred: int, float, bool, str, or a function
        from text to a value.
    delimiter, quote
        One character each [`,`, a tab for ``.tsv`` files; `"`].
    newlines_in_values
        A quoted value may contain line ends [True].
    encoding
        Encoding of the text.
    """

    name = "csv"

    def __init__(
        self,
        files: Sequence[FileEntry],
        reading: Reading,
        *,
        header: bool = True,
        names: Sequence[str] | None = None,
        types: Mapping[str, Callable[[str], Any]] | None = None,
        delimiter: str | None = None,
        quote: str = '"',
        newlines_in_values: bool = True,
        encoding: str = "utf-8",
    ) -> None:
        super().__init__(files, reading)
        self._header, self._given_names, self._given_types = header, names, dict(types or {})
        tabs = files[0].uri.endswith((".tsv", ".tsv.gz", ".tsv.bz2"))
        self._delimiter, self._quote = delimiter or ("\t" if tabs else ","), quote
        self._whole, self._encoding = newlines_in_values, encoding
        self._found: tuple[list[str], list[Callable[[str], Any]]] | None = None

    def splits(self, file: FileEntry, unit: int) -> list[Split]:
        """Divide a file at ranges of bytes, with ``newlines_in_values=False``."""
        return [Split(file, 0, None, file.size)] if self._whole else byte_ranges(file, unit)

    def read(self, split: Split) -> Iterator[Batch]:
        """Yield the records that start in a range of bytes."""
        names, types = self._columns()
        wanted = self.reading.columns
        chosen = [i for i, name in enumerate(names) if wanted is None or name in wanted]
        rows = self._rows(split)
        if self._header and split.start == 0:
            found = next(rows, None)
            if found is not None and found[1] != names:
                raise DataError(
                    _("The columns of {file} are {found}, those of {first} are {names}.").format(
                        file=split.file.uri,
                        found=", ".join(found[1]),
                        first=self.files[0].uri,
                        names=", ".join(names),
                    )
                )
        batch: list[list[str]] = []
        place = ""
        for place, row in rows:
            if len(row) != len(names):
                reason = _("{found} values instead of {count}").format(
                    found=len(row), count=len(names)
                )
                raise damaged(split.file, place, reason)
            batch.append(row)
            if len(batch) == self.reading.batch_size:
                yield self._batch(split.file, place, batch, names, types, chosen)
                batch = []
        if batch:
            yield self._batch(split.file, place, batch, names, types, chosen)

    def _rows(self, split: Split) -> Iterator[tuple[str, list[str]]]:
        """Yield each record with its place."""
        place = [""]

        def lines() -> Iterator[str]:
            number = 0
            for offset, block in line_blocks(split):
                for line in block:
                    number += 1
                    place[0] = f"line {number}" if split.start == 0 else f"byte {offset}"
                    text = decoded(split.file, offset, [line], self._encoding)[0]
                    offset += len(line)
                    yield text + "\n"

        reader = csv.reader(lines(), delimiter=self._delimiter, quotechar=self._quote, strict=True)
        before = 0
        try:
            for row in reader:
                if not self._whole and reader.line_num > before + 1:
                    raise damaged(split.file, place[0], _("a value contains a line end"))
                before = reader.line_num
                if row:
                    yield place[0], row
        except csv.Error as exc:
            raise damaged(split.file, place[0], exc) from exc

    def _columns(self) -> tuple[list[str], list[Callable[[str], Any]]]:
        """Return names and types of the columns, from the first file."""
        if self._found is None:
            first = self.files[0]
            rows = self._rows(Split(first, 0, None, first.size))
            sample = [row for _place, row in (next(rows, ("", [])) for _n in range(_SAMPLE)) if row]
            if self._header:
                names = sample.pop(0) if sample else []
            else:
                width = len(sample[0]) if sample else 0
                names = list(self._given_names or (f"c{i}" for i in range(width)))
            for name in (*self._given_types, *(self.reading.columns or ())):
                if names and name not in names:
                    raise DataError(
                        _("There is no column {name} in {file}; the columns are {names}.").format(
                            name=name, file=first.uri, names=", ".join(names)
                        )
                    )
            columns = [[row[i] for row in sample if i < len(row)] for i in range(len(names))]
            types = [
                self._given_types.get(name) or _inferred(values)
                for name, values in zip(names, columns)
            ]
            self._found = names, types
        return self._found

    def _batch(
        self,
        file: FileEntry,
        place: str,
        rows: list[list[str]],
        names: list[str],
        types: list[Callable[[str], Any]],
        chosen: list[int],
    ) -> Batch:
        columns = {}
        for i in chosen:
            texts, kind = [row[i] for row in rows], types[i]
            try:
                columns[names[i]] = texts if kind is str else [_value(kind, text) for text in texts]
            except ValueError as exc:
                expected = getattr(kind, "__name__", "value").strip("_")
                raise DataError(
                    _(
                        "The column {column} of {file} has a value before {place} that is no "
                        "{kind} ({reason}): give types={{...}}."
                    ).format(column=names[i], file=file.uri, place=place, kind=expected, reason=exc)
                ) from exc
        return Batch(columns)


def _value(kind: Callable[[str], Any], text: str) -> Any:
    if not text and kind is float:
        return float("nan")
    return _truth(text) if kind is bool else kind(text)


def _inferred(values: list[str]) -> Callable[[str], Any]:
    """Return the first type that all values have."""
    if any(values):
        for kind in (int, float, bool):
            try:
                for value in values:
                    _value(kind, value)
            except ValueError:
                continue
            return kind
    return str
