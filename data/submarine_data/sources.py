"""From URIs to the files of a dataset: manifests, directories, globs, and Hive partitions."""

from __future__ import annotations

import os
import re
from typing import Any, Mapping, NamedTuple, Sequence
from urllib.parse import unquote, urlsplit

from submarine_data.errors import DataError
from submarine_data.file_systems import FileEntry, file_system_of, local_path, scheme_of
from submarine_data.predicates import Predicate
from submarine_runtime.translation import _

#: A longer manifest is damage, or no manifest.
_LONGEST_MANIFEST = 64 << 20
#: From this number of files of a directory in a manifest, the directory is listed once.
_LISTED = 16
#: What Hive writes for a missing value.
_MISSING = "__HIVE_DEFAULT_PARTITION__"
_PARTITION = re.compile(r"([^/=?*\[\]]+)=([^/]*)")
#: Files of LMDB and Hadoop beside the data.
_OTHER_FILES = ("lock.mdb",)


class Source(NamedTuple):
    """A file, and the values of its partition columns."""

    file: FileEntry
    partitions: Mapping[str, Any]


def find_sources(uris: str | Sequence[str], partitions: bool = True) -> list[Source]:
    """Return the files of URIs: in the order of the URIs, each once.

    Files of a directory or glob whose names, or the names of whose directories, begin with ``_`` or
    ``.`` are left out, as Hadoop and Spark do.

    Parameters
    ----------
    uris
        Files, directories, globs, and manifests: ``@URI`` of a text file in UTF-8 with one URI in
        each line. A relative line is relative to the directory of the manifest; ``..`` and links
        are allowed, because the process reads with its user's own rights.
    partitions
        Directories ``key=value`` are columns.

    Raises
    ------
    DataError
        If there are no files, or the partitions of two files have different keys.
    """
    entries: dict[str, FileEntry] = {}
    given = [uris] if isinstance(uris, (str, os.PathLike)) else list(uris)
    for uri in map(os.fspath, given):
        found = _of_manifest(uri[1:]) if uri.startswith("@") else _visible(uri)
        entries.update((entry.uri, entry) for entry in found if entry.uri not in entries)
    files = list(entries.values())
    if not files:
        raise DataError(_("There are no files in {uris}.").format(uris=", ".join(given)))
    return sources_of(files, partitions)


def sources_of(files: Sequence[FileEntry], partitions: bool = True) -> list[Source]:
    """Return files that were listed before, with their partitions; see ``find_sources``."""
    return _with_partitions(files) if partitions else [Source(file, {}) for file in files]


def selected(sources: Sequence[Source], conditions: Sequence[Predicate]) -> list[Source]:
    """Return the files whose partitions fulfil the conditions on them."""
    return [
        source
        for source in sources
        if all(
            condition.holds(source.partitions[condition.column])
            for condition in conditions
            if condition.column in source.partitions
        )
    ]


def _visible(uri: str) -> list[FileEntry]:
    found = file_system_of(uri).find(uri)
    if len(found) == 1 and _path(found[0].uri) == _path(uri):
        return found
    base = len(_fixed(_path(uri)))
    visible = []
    for entry in found:
        parts = _path(entry.uri)[base:].split("/")
        if entry.size >= 0 and not any(part.startswith(("_", ".")) for part in parts):
            visible.append(entry)
    return [entry for entry in visible if not entry.uri.endswith(_OTHER_FILES)]


def _fixed(path: str) -> str:
    """Return the part of a path before its first wildcard."""
    match = re.search(r"[*?\[]", path)
    return path[: path.rfind("/", 0, match.start()) + 1] if match else path.rstrip("/")


def _path(uri: str) -> str:
    scheme = scheme_of(uri)
    if scheme == "file":
        return local_path(uri)
    if scheme in ("http", "https"):
        return urlsplit(uri).path
    # In HDFS and object stores "?" and "#" are characters of names.
    _host, slash, path = uri.partition("://")[2].partition("/")
    return slash + path


def _of_manifest(uri: str) -> list[FileEntry]:
    with file_system_of(uri).open(uri) as source:
        data = source.read(_LONGEST_MANIFEST + 1)
    if len(data) > _LONGEST_MANIFEST:
        raise DataError(_("The manifest {uri} is larger than 64 MB.").format(uri=uri))
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as exc:
        raise DataError(
            _("The manifest {uri} is no UTF-8 text at byte {byte}.").format(uri=uri, byte=exc.start)
        ) from exc
    lines = [line.rstrip("\r") for line in text.split("\n")]
    targets = []
    for number, line in enumerate(lines, 1):
        if line.startswith("@"):
            raise DataError(
                _("Line {number} of {uri} names a manifest: manifests contain files only.").format(
                    number=number, uri=uri
                )
            )
        if line.strip():
            targets.append(_absolute(line, uri))
    found: list[FileEntry] = []
    listed = _listings(targets)
    for target in targets:
        found.extend([listed[target]] if target in listed else _visible(target))
    return found


def _absolute(line: str, manifest: str) -> str:
    if scheme_of(line) != "file" or line.lower().startswith("file:"):
        return line
    if scheme_of(manifest) == "file":
        return os.path.join(os.path.dirname(local_path(manifest)), line)
    if line.startswith("/"):
        parts = urlsplit(manifest)
        return f"{parts.scheme}://{parts.netloc}{line}"
    return f"{manifest.rpartition('/')[0]}/{line}"


def _listings(targets: Sequence[str]) -> dict[str, FileEntry]:
    """List directories of which many remote files are named: one request instead of many."""
    folders: dict[str, int] = {}
    for target in targets:
        if scheme_of(target) != "file":
            folder = target.rpartition("/")[0]
            folders[folder] = folders.get(folder, 0) + 1
    found: dict[str, FileEntry] = {}
    for folder, count in folders.items():
        if count >= _LISTED:
            entries = file_system_of(folder).find(folder)
            found.update((entry.uri, entry) for entry in entries)
    return found


def _with_partitions(files: Sequence[FileEntry]) -> list[Source]:
    texts = [_partition_texts(file) for file in files]
    keys = list(texts[0])
    for file, values in zip(files, texts):
        if list(values) != keys:
            raise DataError(
                _(
                    "{first} has the partitions {left}, {file} has {right}: pass partitions=False."
                ).format(
                    first=files[0].uri,
                    left=", ".join(keys) or _("none"),
                    file=file.uri,
                    right=", ".join(values) or _("none"),
                )
            )
    numbers = {key for key in keys if all(_is_number(values[key]) for values in texts)}
    return [
        Source(
            file,
            {
                key: None if text is None else int(text) if key in numbers else text
                for key, text in values.items()
            },
        )
        for file, values in zip(files, texts)
    ]


def _partition_texts(file: FileEntry) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for part in _path(file.uri).split("/")[:-1]:
        match = _PARTITION.fullmatch(part)
        if match:
            value = unquote(match[2])
            found[unquote(match[1])] = None if value == _MISSING else value
    return found


def _is_number(text: str | None) -> bool:
    return text is None or re.fullmatch(r"-?(0|[1-9][0-9]{0,17})", text) is not None
