"""Environments on a shared path, which YARN unpacks once on each node for all users.

YARN keeps a localized file for all users if everyone may read it and search the directories above
it. It refuses the container otherwise, so this is checked before.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from pathlib import Path

from submarine_jobs.errors import UsageError
from submarine_jobs.storage import Storage
from submarine_jobs.text import one_line
from submarine_runtime.translation import _

_FILE_MODE, _DIRECTORY_MODE = 0o644, 0o755
_READ, _SEARCH = 0o004, 0o001
#: Of what is published; YARN unpacks a file by its suffix.
_SUFFIXES = (".tar.gz", ".tgz")


def check_shared(uri: str, storage: Storage) -> None:
    """Check that an archive can be kept for all users.

    Raises
    ------
    UsageError
        If it does not exist, or its permissions are too narrow.
    """
    path = _path(uri, storage)
    entry = storage.stat(path)
    if entry is None or entry.is_directory:
        raise UsageError(
            _("--python-env shared:{uri}: there is no such file.").format(uri=uri),
            _("Publish it with `submarine env publish`, or check the address."),
        )
    if entry.mode and not entry.mode & _READ:
        raise UsageError(
            _("--python-env shared:{uri}: not all users may read the file.").format(uri=uri),
            _("Run `hdfs dfs -chmod 644 {path}`, or use archive:{uri}.").format(path=path, uri=uri),
        )
    _check_directories(uri, path, storage)


def publish_archive(archive: Path, uri: str, storage: Storage) -> int:
    """Upload an archive so that all users may read it, and return its size.

    Raises
    ------
    UsageError
        If the file exists, or not all users may search its directory.
    """
    check_target(uri, storage)
    path = _path(uri, storage)
    storage.make_directory(posixpath.dirname(path), mode=_DIRECTORY_MODE)
    storage.upload(archive, path, mode=_FILE_MODE)
    return archive.stat().st_size


def check_target(uri: str, storage: Storage) -> None:
    """Check that an archive can be published at ``uri``, before it is packed.

    Raises
    ------
    UsageError
        If the name has another suffix, the file exists, or not all users may search its directory.
    """
    if not uri.endswith(_SUFFIXES) or "://" not in uri:
        raise UsageError(
            _("An environment cannot be published at {uri}.").format(uri=one_line(uri, 80)),
            _("Give a URI that ends in .tar.gz, such as hdfs:///envs/torch-2.15.tar.gz."),
        )
    path = _path(uri, storage)
    if storage.stat(path) is not None:
        raise UsageError(
            _("{uri} exists already, and jobs may use it.").format(uri=uri),
            _("Choose another name, with a version for example."),
        )
    _check_directories(uri, path, storage)


def _path(uri: str, storage: Storage) -> str:
    path = storage.path_of(uri)
    if path is None:
        raise UsageError(
            _("{uri} is not in the file system of the job root, {prefix}.").format(
                uri=uri, prefix=storage.prefix
            ),
            _("Give a path there, such as {prefix}/envs/torch.tar.gz.").format(
                prefix=storage.prefix
            ),
        )
    return path


def _check_directories(uri: str, path: str, storage: Storage) -> None:
    for directory in _above(path):
        entry = storage.stat(directory)
        if entry is not None and entry.mode and not entry.mode & _SEARCH:
            raise UsageError(
                _("{uri}: not all users may search the directory {directory}.").format(
                    uri=uri, directory=directory
                ),
                _("Choose a directory that all users may search, or run `hdfs dfs -chmod o+x`."),
            )


def _above(path: str) -> Iterator[str]:
    while path != "/":
        path = posixpath.dirname(path)
        yield path
