"""The one interface to the file systems that hold job directories; implements none.

Paths are absolute, without scheme and host, ``/`` between the parts. Every operation ends within
the storage's timeout.
"""

from __future__ import annotations

import itertools
import posixpath
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from submarine_jobs.errors import StorageError
from submarine_runtime.protocol.agent_config import JobStore

#: Ports of a NameNode that a URI may leave out, by scheme.
DEFAULT_PORTS = {"hdfs": 8020, "webhdfs": 9870, "swebhdfs": 9871}
#: Most files and directories that one listing, or one walk through a tree, returns.
MAX_ENTRIES = 200_000


def _normal(path: str) -> str:
    return "/" + posixpath.normpath(path).lstrip("/")


@dataclass(frozen=True)
class Entry:
    """One file or directory: base name, size in bytes, modification time in epoch seconds.

    ``owner`` is the file system's name for whose it is; empty: not known.
    """

    name: str
    size: int
    is_directory: bool
    modified: float
    owner: str = ""


class Storage(ABC):
    """A file system that holds job directories.

    All methods raise ``StorageError`` with one sentence when the file system fails or does not
    answer in time, and ``FileNotFoundError`` for a path that is not there.
    """

    #: Prefix that turns a path of this storage into a URL, ``hdfs://host:port`` or ``file://``.
    prefix: str
    #: Further prefixes of the same file system, ``webhdfs://host:port``; in lower case.
    addresses: Collection[str] = ()

    def url(self, path: str) -> str:
        """The URL of ``path``."""
        return self.prefix + path

    def path_of(self, uri: str) -> str | None:
        """The path of ``uri`` in this file system; None if it lies in another one.

        A path without a scheme is of this file system if it is absolute. A user in the URI is
        ignored, as Hadoop does: requests are made as the profile's user.
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
        """Bytes from ``offset``, at most ``length``; fewer at the end of the file."""

    @abstractmethod
    def publish(self, path: str, data: bytes, *, mode: int = 0o600) -> None:
        """Put a whole file in place by rename, replacing any; makes parents."""

    @abstractmethod
    def publish_exclusive(self, path: str, data: bytes, *, mode: int = 0o600) -> bool:
        """Put a whole file in place unless the name is taken; False when somebody was first.

        Safe to repeat after a lost reply: if what lies there equals ``data`` the answer is True.
        """

    @abstractmethod
    def list_directory(self, path: str) -> list[Entry]:
        """Entries of a directory sorted by name, temporary names left out."""

    @abstractmethod
    def stat(self, path: str) -> Entry | None:
        """What is at ``path``, or None."""

    @abstractmethod
    def make_directory(self, path: str, *, mode: int = 0o700) -> None:
        """Create a directory and its parents; no error when it is there."""

    @abstractmethod
    def delete(self, path: str, *, recursive: bool = False) -> None:
        """Remove; no error when it is not there."""

    @abstractmethod
    def upload(self, source: Path, path: str, heard: Callable[[int], None] | None = None) -> None:
        """Copy a local file here, published by rename, without holding it in memory.

        Parameters
        ----------
        heard
            Told of the bytes sent so far; where a storage copies at once, of nothing.
        """

    @abstractmethod
    def download(self, path: str, target: Path) -> None:
        """Copy a file to this machine without holding it in memory."""

    @abstractmethod
    def job_store(self, path: str) -> JobStore:
        """How an agent in a container reaches ``path`` with the standard library alone."""

    def owner_as(self, user: str) -> str:
        """What ``stat`` names as the owner of a file that ``user`` makes here."""
        return user

    def walk(self, path: str) -> list[tuple[str, int]]:
        """All files below ``path`` as (relative path, size), sorted.

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
    """The entries of one directory.

    Raises
    ------
    StorageError
        If there are more than ``MAX_ENTRIES``.
    """
    found = list(itertools.islice(entries, MAX_ENTRIES + 1))
    if len(found) > MAX_ENTRIES:
        raise _too_many("A directory")
    return found


def _too_many(what: str) -> StorageError:
    return StorageError(
        f"{what} holds more than {MAX_ENTRIES:,} files and directories.",
        "Look at it with `hdfs dfs -ls`, and remove what is not needed.",
    )
