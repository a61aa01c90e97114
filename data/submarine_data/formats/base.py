"""What every format offers, and how its files are opened."""

from __future__ import annotations

import bz2
import gzip
import io
from contextlib import contextmanager
from functools import partial
from typing import Any, BinaryIO, Callable, Iterator, NamedTuple, Sequence, cast

from submarine_data.batches import Batch
from submarine_data.errors import DataError
from submarine_data.file_systems import FileEntry, file_system_of, scheme_of
from submarine_data.predicates import Predicate
from submarine_data.reading_ahead import PIECE, ReadAheadFile
from submarine_runtime.translation import _

#: Records are collected to batches of about this many bytes where a format has no larger unit.
CHUNK = 1 << 20


class Split(NamedTuple):
    """A part of a file that is read by itself.

    Parameters
    ----------
    file
        The file.
    start, end
        First unit and the one after the last, in what the format counts: bytes, row groups,
        stripes or entries. ``end`` is None for the end of a file that was not opened.
    weight
        About how many bytes are read.
    """

    file: FileEntry
    start: int
    end: int | None
    weight: int


class Reading(NamedTuple):
    """What is read of the files.

    Parameters
    ----------
    columns
        Columns of the files to read, those of the conditions included; None for all.
    conditions
        Predicates on columns of the files. A format may leave out units without such records; the
        records themselves are compared by the caller.
    batch_size
        Records of a batch that a reader should return.
    """

    columns: tuple[str, ...] | None = None
    conditions: tuple[Predicate, ...] = ()
    batch_size: int = 1024


class Format:
    """A format, for the files of one dataset.

    Parameters
    ----------
    files
        All files of the dataset, in order: the first is the reference for columns and types.
    reading
        What is read of them.
    """

    #: Its name, as in ``open_dataset(format=...)``.
    name = ""

    def __init__(self, files: Sequence[FileEntry], reading: Reading) -> None:
        self.files, self.reading = files, reading

    def splits(self, file: FileEntry, unit: int) -> list[Split]:
        """Divide a file into parts of about ``unit`` bytes; one part where that is impossible."""
        return [Split(file, 0, None, file.size)]

    def place(self, split: Split, record: int) -> str:
        """Return where a record of a part is, for messages; empty: there is no smaller unit.

        Parameters
        ----------
        record
            Number of the record in the part, from 0.
        """
        return ""

    def read(self, split: Split) -> Iterator[Batch]:
        """Yield the records of a part, in order, in batches of any size; called by ``read_all``.

        Raises
        ------
        DataError
            If the file is damaged or its columns differ from those of the first file.
        """
        raise NotImplementedError

    def read_all(self, splits: Sequence[Split]) -> Iterator[tuple[int, Batch]]:
        """Yield the records of parts, in order: number of the part, and a batch as of ``read``.

        A format that reads the next part in advance has this method in place of ``read``.
        """
        for number, split in enumerate(splits):
            with names_file(split.file):
                for batch in self.read(split):
                    yield number, batch


def open_file(file: FileEntry) -> io.BufferedReader:
    """Open a file for reading from its start; one that is not local is read ahead."""
    again = partial(file_system_of(file.uri).open, file.uri)
    source = again()
    if is_local(file):
        return cast("io.BufferedReader", source)
    return io.BufferedReader(ReadAheadFile(source, file.size, again=again), min(PIECE, 1 << 20))


def is_local(file: FileEntry) -> bool:
    """Return whether a file is on this machine."""
    return scheme_of(file.uri) == "file"


def slow_jumps(file: FileEntry) -> bool:
    """See ``FileSystem.slow_jumps``."""
    return file_system_of(file.uri).slow_jumps


@contextmanager
def names_file(file: FileEntry) -> Iterator[None]:
    """Replace an error of the operating system by one that names the file."""
    try:
        yield
    except DataError:
        raise
    except OSError as exc:
        raise DataError(
            _("{file} cannot be read: {reason}.").format(file=file.uri, reason=exc.strerror or exc)
        ) from exc


def is_compressed(file: FileEntry) -> bool:
    """Return whether a file's name says that it is compressed as a whole."""
    return file.uri.endswith((".gz", ".bz2"))


@contextmanager
def open_decompressed(file: FileEntry) -> Iterator[BinaryIO]:
    """Open a file that may be compressed as a whole by gzip or bzip2, as its suffix says."""
    with open_file(file) as source:
        if file.uri.endswith(".gz"):
            with gzip.GzipFile(fileobj=source) as plain:
                yield cast("BinaryIO", plain)
        elif file.uri.endswith(".bz2"):
            with bz2.BZ2File(source) as decompressed:
                yield cast("BinaryIO", decompressed)
        else:
            yield source


def store_error(source: object, error: BaseException) -> DataError | None:
    """Return the error of the store while a package read a file; None: the file is damaged.

    Parameters
    ----------
    source
        What the package read: the result of ``open_file``, or a path.
    error
        What the package raised. Some keep only the text of the error of a file object.
    """
    if isinstance(error, DataError):
        return error
    raw = getattr(source, "raw", None)
    return raw.failure if isinstance(raw, ReadAheadFile) else None


def damaged(file: FileEntry, place: str, reason: object) -> DataError:
    """Return the error about a damaged file.

    Parameters
    ----------
    file
        The file.
    place
        Where: ``byte 1000``, ``row group 3``.
    reason
        What is wrong there; only the first line is shown.
    """
    text = str(reason).strip().partition("\n")[0].rstrip(".")
    return DataError(
        _("{file} is damaged at {place}: {reason}.").format(
            file=file.uri, place=place, reason=text or type(reason).__name__
        )
    )


def find_marker(source: BinaryIO, marker: bytes, start: int) -> int | None:
    """Return the first position of the marker at or after ``start``; None if there is none."""
    source.seek(start)
    position, tail = start, b""
    while True:
        data = source.read(1 << 16)
        if not data:
            return None
        window = tail + data
        found = window.find(marker)
        if found >= 0:
            return position - len(tail) + found
        position += len(data)
        tail = window[-(len(marker) - 1) :]


class Collector:
    """Collect records to batches of about 1 MiB, and at most ``most`` records.

    Parameters
    ----------
    most
        Records of a batch.
    make
        Function from a list of records to a batch.
    """

    def __init__(self, most: int, make: Callable[[list[Any]], Batch]) -> None:
        self._most, self._make = most, make
        self._records: list[Any] = []
        self._bytes = 0

    def add(self, record: Any, size: int) -> Batch | None:
        """Add a record of ``size`` bytes; return a batch when it is complete."""
        self._records.append(record)
        self._bytes += size
        if self._bytes < CHUNK and len(self._records) < self._most:
            return None
        return self.rest()

    def rest(self) -> Batch | None:
        """Return a batch of the records so far; None if there are none."""
        if not self._records:
            return None
        records, self._records, self._bytes = self._records, [], 0
        return self._make(records)
