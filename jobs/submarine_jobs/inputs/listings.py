"""List the files of an input at the submission: a file, a directory, a pattern, or a manifest.

A directory costs one request to the NameNode. All agents of the job use this listing, so that their
shares fit together, also after a restart.
"""

from __future__ import annotations

import fnmatch
import functools
import posixpath
import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple
from urllib.parse import unquote

from submarine_jobs.errors import StorageError, UsageError
from submarine_jobs.inputs.locations import (
    HUB,
    MAGIC,
    MANIFEST,
    WEB,
    Finder,
    Place,
    RemotePlace,
    scheme_of,
    shown,
)
from submarine_jobs.model import NamedInput
from submarine_runtime.agent.preparation import (
    MAX_FILES,
    InputError,
    SourceFile,
    is_metadata,
    list_input,
    write_listing,
)
from submarine_runtime.storage import Entry, Store, StoreError
from submarine_runtime.translation import _

#: From this number of files in one directory on, a manifest's lines are looked up in its listing.
_LIST_FROM = 4
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class Listing(NamedTuple):
    """The files of an input: paths below ``base`` with their sizes, and sources.

    ``single``: the input is one file and not a directory.
    """

    files: list[SourceFile]
    single: bool
    base: str

    def to_bytes(self) -> bytes:
        """Return the content of the listing's file in the job directory."""
        return write_listing(self.files, self.single, self.base)


def listed(item: NamedInput, place: Place) -> Listing:
    """Return the files at a place.

    Raises
    ------
    UsageError
        If there is nothing, or there are too many files.
    StorageError
        If the file system does not answer.
    """
    store = place.storage.open_store("/")
    with _Errors(item):
        if store.stat(place.path) is not None or not MAGIC.search(place.path):
            found, single, directory = _tree(item, place.path, store)
        else:
            found, directory = _matches(item, place, store)
            single = False
    if item.mode in ("list", "stream"):
        found = [file for file in found if single or not is_metadata(file.path)]
    if not found and not single:
        raise UsageError(
            _("--input {item}: there are no files in {url}.").format(item=item.name, url=place.url),
            _("Check the address."),
        )
    base = f"{place.prefix}{directory.rstrip('/')}/"
    files = [file._replace(source=f"{base}{file.path}") for file in found]
    return Listing(files, single, base)


def read_manifest(item: NamedInput, place: Place | RemotePlace, find: Finder) -> Listing:
    """Return the files that a manifest names.

    A line is the URI of a file, a directory or a pattern; empty lines and those that begin with
    ``#`` are skipped. The size of a file in a remote store is not known.

    Raises
    ------
    UsageError
        If there is no manifest, or a line is not such a URI.
    StorageError
        If a file system does not answer.
    """
    if isinstance(place, RemotePlace):
        raise UsageError(
            _("--input {item}: the manifest {uri} is not on HDFS.").format(
                item=item.name, uri=shown(place.uri)
            ),
            _("Copy the text file to HDFS; its lines may name files of other stores."),
        )
    with _Errors(item):
        data = place.storage.open_store("/").read(place.path)
    if data is None:
        raise UsageError(
            _("--input {item}: there is no manifest {url}.").format(item=item.name, url=place.url),
            _("Check the address."),
        )
    lines = list(_lines(item, place, data))
    found: dict[int, list[SourceFile]] = {}
    local: dict[tuple[str, str], list[tuple[int, Place]]] = {}
    for number, uri in lines:
        try:
            at = find(uri)
        except UsageError as error:
            raise _line_error(item, place, number, str(error)) from None
        if isinstance(at, RemotePlace):
            found[number] = [_remote_file(item, place, number, at)]
        else:
            local.setdefault((at.prefix, posixpath.dirname(at.path)), []).append((number, at))
    for entries in local.values():
        found.update(_local_files(item, place, entries))
    return _combined(item, place, found)


def _lines(item: NamedInput, place: Place, data: bytes) -> Iterator[tuple[int, str]]:
    """Yield number and URI of each line of a manifest that has one."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(
            _("--input {item}: the manifest {url} is not a text in UTF-8.").format(
                item=item.name, url=place.url
            )
        ) from None
    count = 0
    for number, line in enumerate(text.split("\n"), 1):
        uri = line.removesuffix("\r")
        if not uri.strip() or uri.startswith("#"):
            continue
        count += 1
        if count > MAX_FILES:
            raise UsageError(
                _("--input {item}: {url} has more than {max_files} lines.").format(
                    item=item.name, url=place.url, max_files=MAX_FILES
                )
            )
        scheme = scheme_of(uri)
        if scheme == HUB or uri.startswith(MANIFEST):
            problem = _("{uri!r} is not a file").format(uri=uri[:120])
        elif not scheme and not uri.startswith("/"):
            problem = _("{uri!r} is neither a URI nor an absolute path").format(uri=uri[:120])
        elif ".." in unquote(uri).split("/"):
            problem = _("{uri!r} contains .., which leads out of a directory").format(uri=uri[:120])
        elif _CONTROL.search(uri):
            problem = _("{uri!r} contains a control character").format(uri=uri[:120])
        else:
            yield number, uri
            continue
        raise _line_error(item, place, number, problem)


def _line_error(item: NamedInput, place: Place, number: int, problem: str) -> UsageError:
    return UsageError(
        _("--input {item}: line {number} of {url}: {problem}.").format(
            item=item.name, number=number, url=place.url, problem=problem.rstrip(".")
        )
    )


def _remote_file(item: NamedInput, place: Place, number: int, at: RemotePlace) -> SourceFile:
    pattern = scheme_of(at.uri) not in WEB and MAGIC.search(at.path)
    if pattern or any(part in ("", ".") for part in at.path.split("/")):
        raise _line_error(
            item, place, number, _("{uri} does not name one file").format(uri=shown(at.uri))
        )
    return SourceFile(at.path, 0, at.uri)


def _local_files(
    item: NamedInput, manifest: Place, entries: Sequence[tuple[int, Place]]
) -> dict[int, list[SourceFile]]:
    """Return the files of lines in one directory; the directory is listed once."""
    first = entries[0][1]
    store = first.storage.open_store("/")
    sizes: dict[str, int] = {}
    directory = posixpath.dirname(first.path)
    with _Errors(item):
        if len(entries) >= _LIST_FROM and not MAGIC.search(directory):
            listing = store.entries(directory)
            sizes = {entry.name: entry.size for entry in listing if not entry.is_directory}
    found = {}
    for number, at in entries:
        size = sizes.get(posixpath.basename(at.path))
        if size is not None:
            files = [SourceFile(at.path, size, f"{at.prefix}{at.path}")]
        else:
            try:
                inner = listed(item, at)
            except UsageError as error:
                raise _line_error(item, manifest, number, error.message) from None
            files = [
                file._replace(path=file.source.removeprefix(at.prefix)) for file in inner.files
            ]
        authority = at.prefix.partition("://")[2]
        found[number] = [file._replace(path=f"{authority}{file.path}") for file in files]
    return found


def _combined(item: NamedInput, place: Place, found: dict[int, list[SourceFile]]) -> Listing:
    """Return the files of all lines, with paths below their common directory."""
    first: dict[str, int] = {}
    for number in sorted(found):
        for file in found[number]:
            if first.setdefault(file.path, number) != number:
                raise _line_error(
                    item,
                    place,
                    number,
                    _("it names {file} again, as line {first} does").format(
                        file=shown(file.source), first=first[file.path]
                    ),
                )
    files = [file for number in sorted(found) for file in found[number]]
    if not files:
        raise UsageError(
            _("--input {item}: the manifest {url} names no files.").format(
                item=item.name, url=place.url
            )
        )
    if len(files) > MAX_FILES:
        raise _too_many(item, place)
    common = posixpath.commonpath(
        [posixpath.dirname(f"/{file.path.lstrip('/')}") for file in files]
    )
    start = len(common.rstrip("/")) + 1
    files = [file._replace(path=f"/{file.path.lstrip('/')}"[start:]) for file in files]
    return Listing(files, False, files[0].source.removesuffix(files[0].path))


def _tree(item: NamedInput, path: str, store: Store) -> tuple[list[SourceFile], bool, str]:
    """Return the files of a file or directory, whether it is one file, and their directory."""
    files, single = list_input(store, NamedInput(item.name, path))
    return files, single, posixpath.dirname(path) if single else path


def _matches(item: NamedInput, place: Place, store: Store) -> tuple[list[SourceFile], str]:
    """Return the files that match a pattern, and the directory before its first special part."""
    parts = place.path.strip("/").split("/")
    fixed = next(number for number, part in enumerate(parts) if MAGIC.search(part))
    top = "/" + "/".join(parts[:fixed])
    files: dict[str, int] = {}
    entries = functools.lru_cache(maxsize=None)(store.entries)
    for path, size in _walk(entries, top, parts[fixed:]):
        if size is None:
            tree, _single, _directory = _tree(item, path, store)
            files.update((f"{path}/{file.path}", file.size) for file in tree)
        else:
            files[path] = size
        if len(files) > MAX_FILES:
            raise _too_many(item, place)
    if not files:
        raise UsageError(
            _("--input {item}: no file matches {url}.").format(item=item.name, url=place.url),
            _("Check the pattern, and put it in quotes in a shell."),
        )
    start = len(top.rstrip("/")) + 1
    return [SourceFile(path[start:], size) for path, size in sorted(files.items())], top


def _walk(
    list_directory: Callable[[str], list[Entry]], directory: str, parts: Sequence[str]
) -> Iterator[tuple[str, int | None]]:
    """Yield what matches ``parts`` below a directory: path, and size (None: a directory)."""
    part, rest = parts[0], parts[1:]
    base = directory.rstrip("/")
    if part == "**":
        if rest:
            yield from _walk(list_directory, directory, rest)
        for entry in list_directory(directory):
            path = f"{base}/{entry.name}"
            if entry.is_directory:
                yield from _walk(list_directory, path, parts)
            elif not rest:
                yield path, entry.size
        return
    if not MAGIC.search(part) and rest:
        yield from _walk(list_directory, f"{base}/{part}", rest)
        return
    matches = re.compile(fnmatch.translate(part.replace("[^", "[!"))).match
    for entry in list_directory(directory):
        if not matches(entry.name):
            continue
        path = f"{base}/{entry.name}"
        if rest:
            if entry.is_directory:
                yield from _walk(list_directory, path, rest)
        else:
            yield path, None if entry.is_directory else entry.size


def _too_many(item: NamedInput, place: Place) -> UsageError:
    return UsageError(
        _("--input {item}: {url} names more than {max_files} files; pack them into fewer.").format(
            item=item.name, url=place.url, max_files=MAX_FILES
        )
    )


class _Errors:
    """Converts errors of the agents' code into those of this side."""

    def __init__(self, item: NamedInput) -> None:
        self._item = item

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, InputError):
            raise UsageError(str(error)) from None
        if isinstance(error, StoreError):
            raise StorageError(
                _("--input {item} cannot be listed: {error}.").format(
                    item=self._item.name, error=error
                )
            ) from None
