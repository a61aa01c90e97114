"""Find the format of files by their suffix, else by their first bytes."""

from __future__ import annotations

import os
from typing import Any, Mapping, Sequence

from submarine_data.errors import DataError
from submarine_data.file_systems import FileEntry
from submarine_data.formats.avro import AvroFormat
from submarine_data.formats.base import Format, Reading, open_file
from submarine_data.formats.csv import CsvFormat
from submarine_data.formats.images import ImageFormat
from submarine_data.formats.lmdb import LmdbFormat
from submarine_data.formats.orc import OrcFormat
from submarine_data.formats.parquet import ParquetFormat
from submarine_data.formats.sequence_file import SequenceFileFormat
from submarine_data.formats.text import TextFormat
from submarine_data.formats.tfrecord import TfRecordFormat
from submarine_runtime.translation import _

_FORMATS: Mapping[str, type[Format]] = {
    found.name: found
    for found in (
        ParquetFormat,
        OrcFormat,
        CsvFormat,
        TextFormat,
        SequenceFileFormat,
        TfRecordFormat,
        AvroFormat,
        LmdbFormat,
        ImageFormat,
    )
}
_SUFFIXES = {
    "parquet": "parquet",
    "pq": "parquet",
    "orc": "orc",
    "csv": "csv",
    "tsv": "csv",
    "txt": "text",
    "text": "text",
    "log": "text",
    "seq": "sequencefile",
    "tfrecord": "tfrecord",
    "tfrecords": "tfrecord",
    "avro": "avro",
    "mdb": "lmdb",
    "lmdb": "lmdb",
    **dict.fromkeys(("jpg", "jpeg", "png", "gif", "bmp", "webp"), "images"),
}
_MAGIC = {b"PAR1": "parquet", b"ORC": "orc", b"SEQ": "sequencefile", b"Obj\x01": "avro"}


def format_names() -> list[str]:
    """Return the names of the formats."""
    return list(_FORMATS)


def create_format(
    name: str | None, files: Sequence[FileEntry], reading: Reading, options: Mapping[str, Any]
) -> Format:
    """Return the format of files.

    Parameters
    ----------
    name
        Its name; None: that of each file's suffix, else of its first bytes.
    files, reading
        See ``Format``.
    options
        Options of the format.

    Raises
    ------
    DataError
        If the format is unknown, the files have several, or there is no such option.
    """
    if name is None:
        name = _detected(files)
    if name not in _FORMATS:
        raise DataError(
            _("The format {name} is unknown; the formats are {known}.").format(
                name=name, known=", ".join(_FORMATS)
            )
        )
    try:
        return _FORMATS[name](files, reading, **options)
    except TypeError as exc:
        raise DataError(
            _("The format {name} does not have these options: {options}.").format(
                name=name, options=", ".join(sorted(options))
            )
        ) from exc


def _detected(files: Sequence[FileEntry]) -> str:
    first = _format_of(files[0])
    for file in files[1:]:
        found = _SUFFIXES.get(_suffix(file), first)
        if found != first:
            raise DataError(
                _("{first} is {left}, {file} is {right}: give a URI of one format.").format(
                    first=files[0].uri, left=first, file=file.uri, right=found
                )
            )
    return first


def _format_of(file: FileEntry) -> str:
    by_suffix = _SUFFIXES.get(_suffix(file))
    if by_suffix:
        return by_suffix
    with open_file(file) as source:
        head = source.read(4)
    for magic, name in _MAGIC.items():
        if head.startswith(magic):
            return name
    raise DataError(
        _("The format of {file} cannot be seen from its name: give format= ({known}).").format(
            file=file.uri, known=", ".join(_FORMATS)
        )
    )


def _suffix(file: FileEntry) -> str:
    stem, suffix = os.path.splitext(os.path.basename(file.uri))
    if suffix in (".gz", ".bz2"):
        suffix = os.path.splitext(stem)[1]
    return suffix[1:].lower()
