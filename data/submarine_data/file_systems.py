"""File systems: find the files of a URI, and open them.

This module reads local files. Other schemes are those of ``submarine_data.remote``.
"""

from __future__ import annotations

import glob
import importlib
import os
import re
from typing import Any, BinaryIO, Iterator, NamedTuple
from urllib.parse import unquote, urlsplit

from submarine_data.errors import DataError
from submarine_runtime.translation import _

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://|(file):", re.IGNORECASE)
#: Buffer of a local file, in bytes.
_BUFFER = 1 << 20

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol
else:
    Protocol = object


class FileEntry(NamedTuple):
    """A file.

    Parameters
    ----------
    uri
        Its URI; a path if it is local.
    size
        In bytes.
    modified
        Time of the last change by the clock of its store, in seconds since 1970.
    """

    uri: str
    size: int
    modified: float


class FileSystem(Protocol):
    """What a file system offers. Both methods raise DataError with one sentence."""

    #: Whether reading some MB elsewhere in a file takes clearly longer than reading the next ones.
    slow_jumps: bool

    def find(self, uri: str) -> list[FileEntry]:
        """Return the files of a URI, sorted by URI.

        A file is itself; a directory is all files below it; ``*``, ``?``, ``[...]`` and ``**`` in
        the path match names.

        Parameters
        ----------
        uri
            A path or URI of this file system.

        Raises
        ------
        DataError
            If nothing is there.
        """

    def open(self, uri: str) -> BinaryIO:
        """Open a file: readable, seekable, buffered.

        Each result is independent of the others and may be used in another thread.

        Parameters
        ----------
        uri
            As ``find`` returns it.

        Raises
        ------
        DataError
            If it cannot be opened.
        """


class LocalFileSystem:
    """Paths and ``file:`` URIs of this machine, with the rights of this process.

    Symbolic links and ``..`` are followed like in any program; a directory that contains itself by
    a link is read once.
    """

    slow_jumps = False

    def find(self, uri: str) -> list[FileEntry]:
        """Return the files of a path; see ``FileSystem.find``."""
        path = local_path(uri)
        try:
            if os.path.exists(path):
                found = _files_below(path, ())
            elif glob.has_magic(path):
                matches = sorted(glob.glob(path, recursive=True))
                found = {file: None for match in matches for file in _files_below(match, ())}
            else:
                raise DataError(_("{path} does not exist.").format(path=path))
            entries = [_entry(file) for file in sorted(found)]
        except OSError as exc:
            raise DataError(
                _("{path} cannot be read: {reason}.").format(
                    path=exc.filename or path, reason=exc.strerror or exc
                )
            ) from exc
        if not entries:
            raise DataError(_("There are no files in {path}.").format(path=path))
        return entries

    def open(self, uri: str) -> BinaryIO:
        """Open a local file with a buffer of 1 MiB; see ``FileSystem.open``."""
        path = local_path(uri)
        try:
            return open(path, "rb", buffering=_BUFFER)
        except OSError as exc:
            raise DataError(
                _("{path} cannot be read: {reason}.").format(path=path, reason=exc.strerror or exc)
            ) from exc


def scheme_of(uri: str) -> str:
    """Return the scheme of a URI in lower case; ``file`` for a path."""
    match = _SCHEME.match(uri)
    return (match[1] or match[2]).lower() if match else "file"


def local_path(uri: str) -> str:
    """Return the path of a ``file:`` URI, without its escapes; a path stays as it is."""
    if _SCHEME.match(uri) is None:
        return uri
    parts = urlsplit(uri)
    if parts.netloc not in ("", "localhost"):
        raise DataError(
            _("{uri} names the machine {host}: a file: URI has three slashes.").format(
                uri=uri, host=parts.netloc
            )
        )
    # A "#" or "?" in the path belongs to it.
    path = parts.path + (f"?{parts.query}" if parts.query else "")
    return unquote(path + (f"#{parts.fragment}" if parts.fragment else ""))


def file_system_of(uri: str) -> FileSystem:
    """Return the file system of a URI.

    Parameters
    ----------
    uri
        A path, a ``file:`` URI, or a URI of ``submarine_data.remote``.

    Raises
    ------
    DataError
        If nothing reads this scheme.
    """
    if scheme_of(uri) == "file":
        return LocalFileSystem()
    try:
        remote: Any = importlib.import_module("submarine_data.remote")
    except ModuleNotFoundError as exc:
        if exc.name != "submarine_data.remote":
            raise
        raise DataError(
            _("{uri} cannot be read: only paths and file: URIs are supported here.").format(uri=uri)
        ) from None
    found: FileSystem = remote.remote_file_system(uri)
    return found


def _entry(path: str) -> FileEntry:
    status = os.stat(path)
    return FileEntry(path, status.st_size, status.st_mtime)


def _files_below(path: str, parents: tuple[tuple[int, int], ...]) -> dict[str, None]:
    """Return a file, or the files below a directory, in no order."""
    if not os.path.isdir(path):
        return {path: None}
    return dict.fromkeys(_walk(path, parents))


def _walk(path: str, parents: tuple[tuple[int, int], ...]) -> Iterator[str]:
    status = os.stat(path)
    identity = (status.st_dev, status.st_ino)
    if identity in parents:
        return
    with os.scandir(path) as entries:
        listed = list(entries)
    for entry in listed:
        if entry.is_dir():
            yield from _walk(entry.path, (*parents, identity))
        elif entry.is_file():
            yield entry.path
