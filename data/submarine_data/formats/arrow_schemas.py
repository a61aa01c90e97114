"""Compare the columns of files that pyarrow reads."""

from __future__ import annotations

from typing import Any

from submarine_data.batches import no_column
from submarine_data.errors import DataError
from submarine_data.file_systems import FileEntry
from submarine_runtime.translation import _


def columns_to_read(
    first: FileEntry, reference: Any, file: FileEntry, schema: Any, wanted: tuple[str, ...] | None
) -> list[str]:
    """Return the names of the columns to read, in the order of the first file.

    Parameters
    ----------
    first, reference
        The first file and its ``pyarrow.Schema``.
    file, schema
        The file to read and its schema.
    wanted
        Columns that the caller selects; None for all.

    Raises
    ------
    DataError
        If a column is missing, additional, or of another type in one of the files.
    """
    for name in wanted or ():
        if name not in reference.names:
            raise no_column(name, reference.names)
    names = list(reference.names if wanted is None else wanted)
    if schema is reference:
        return names
    for name in names:
        if name not in schema.names:
            raise _missing(name, first, file)
        left, right = reference.field(name).type, schema.field(name).type
        if left != right:
            raise DataError(
                _("The column {column} is {left} in {first} and {right} in {file}.").format(
                    column=name, left=left, first=first.uri, right=right, file=file.uri
                )
            )
    if wanted is None:
        for name in schema.names:
            if name not in names:
                raise _missing(name, file, first)
    return names


def _missing(name: str, present: FileEntry, absent: FileEntry) -> DataError:
    return DataError(
        _("The column {column} of {present} is missing in {absent}: select columns=[...].").format(
            column=name, present=present.uri, absent=absent.uri
        )
    )
