"""Interface of the file systems that store job directories.

Paths are absolute POSIX paths without scheme and host. Every operation ends within the timeout of
the storage.
"""

from __future__ import annotations

import itertools
import posixpath
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from submarine_jobs.errors import StorageError
from submarine_runtime.protocol import JobStore
from submarine_runtime.translation import _

#: Default ports of a NameNode by scheme.
DEFAULT_PORTS = {"hdfs": 8020, "webhdfs": 9870, "swebhdfs": 9871}
#: Maximum number of entries of one listing or one tree walk.
MAX_ENTRIES = 200_000


def _normal(path: str) -> str:
    return "/" + posixpath.normpath(path).lstrip("/")


@dataclass(frozen=True)
class Entry:
    """File or directory: base name, size in bytes, modification time in epoch seconds.

    ``owner`` is the name of the owner in the file system; empty: not known.
    """

    name: str
    size: int
    is_directory: bool
    modified: float
    owner: str = ""


class Storage(ABC):
    """File system that stores job directories.

    All methods raise ``StorageError`` if the file system fails or does not respond in time, and
    ``FileNotFoundError`` for a missing path.
    """

    #: Prefix of the URLs of this storage, ``hdfs://host:port`` or ``file://``.
    prefix: str
    #: Other prefixes of the same file system, such as ``webhdfs://host:port``; lower case.
    addresses: Collection[str] = ()

    def url(self, path: str) -> str:
        """Return the URL of ``path``."""
        return self.prefix + path

    def path_of(self, uri: str) -> str | None:
        """Return the path of ``uri`` in this file system; None if it is in another one.

        An absolute path without a scheme is in this file system. A user in the URI is ignored, as
        in Hadoop: requests use the user of the profile.
        """
        if uri.startswith("/"):
            return _normal(uri)
        scheme, colon, rest = uri.partition("://")
        if not colon:
            return None
        authority, slash, path = rest.partition("/")
        scheme, authority = scheme.lower(), authority.rpartition("@")[2].lower()
        if not slash:
            return None
        own_scheme = self.prefix.lower().partition("://")[0]
        if authority or scheme != own_scheme:
            port = DEFAULT_PORTS.get(scheme)
            spellings = {f"{scheme}://{authority}"}
            if port and ":" not in authority:
                spellings.add(f"{scheme}://{authority}:{port}")
            if port and authority.endswith(f":{port}"):
                spellings.add(f"{scheme}://{authority.removesuffix(f':{port}')}")
            if spellings.isdisjoint({self.prefix.lower(), *self.addresses}):
                return None
        return _normal(f"/{path}")

    @abstractmethod
    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        """Read at most ``length`` bytes from ``offset``; fewer at the end of the file."""

    @abstractmethod
    def publish(self, path: str, data: bytes, *, mode: int = 0o600) -> None:
        """Write a file atomically by rename, replace an existing one, and create parents."""

    @abstractmethod
    def publish_exclusive(self, path: str, data: bytes, *, mode: int = 0o600) -> bool:
        """Write a file atomically unless it exists; return False if it does.

        Safe to repeat after a lost response: returns True if the existing content equals ``data``.
        """

    @abstractmethod
    def list_directory(self, path: str) -> list[Entry]:
        """List a directory sorted by name, without temporary files."""

    @abstractmethod
    def stat(self, path: str) -> Entry | None:
        """Return the entry of ``path``, or None."""

    @abstractmethod
    def make_directory(self, path: str, *, mode: int = 0o700) -> None:
        """Create a directory and its parents; no error if it exists."""

    @abstractmethod
    def delete(self, path: str, *, recursive: bool = False) -> None:
        """Delete a path; no error if it does not exist."""

    @abstractmethod
    def upload(
        self, source: Path, path: str, progress: Callable[[int], None] | None = None
    ) -> None:
        """Copy a local file to ``path`` atomically, in chunks.

        Parameters
        ----------
        progress
            Called with the number of bytes sent so far; not called by the local storage.
        """

    @abstractmethod
    def download(self, path: str, target: Path) -> None:
        """Copy a file to this machine, in chunks."""

    @abstractmethod
    def job_store(self, path: str) -> JobStore:
        """Describe how an agent in a container accesses ``path`` with the standard library."""

    def owner_name(self, user: str) -> str:
        """Return the owner that ``stat`` reports for a file that ``user`` creates."""
        return user

    def walk(self, path: str) -> list[tuple[str, int]]:
        """Return all files below ``path`` as (relative path, size), sorted.

        Raises
        ------
        StorageError
            If there are more than ``MAX_ENTRIES`` files and directories.
        """
        found: list[tuple[str, int]] = []
        pending, seen = [""], 0
        while pending:
            relative = pending.pop()
            entries = self.list_directory(f"{path}/{relative}".rstrip("/"))
            seen += len(entries)
            if seen > MAX_ENTRIES:
                raise _too_many(self.url(path))
            for entry in entries:
                below = f"{relative}/{entry.name}".lstrip("/")
                if entry.is_directory:
                    pending.append(below)
                else:
                    found.append((below, entry.size))
        return sorted(found)


def bounded(entries: Iterable[Entry]) -> list[Entry]:
    """Return the entries of one directory as a list.

    Raises
    ------
    StorageError
        If there are more than ``MAX_ENTRIES``.
    """
    found = list(itertools.islice(entries, MAX_ENTRIES + 1))
    if len(found) > MAX_ENTRIES:
        raise _too_many(_("A directory"))
    return found


def _too_many(what: str) -> StorageError:
    return StorageError(
        _("{what} holds more than {limit:,} files and directories.").format(
            what=what, limit=MAX_ENTRIES
        ),
        _("List it with `hdfs dfs -ls`, and remove the files that you do not need."),
    )
