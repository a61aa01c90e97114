"""Interface of the file systems that store job directories.

Paths are absolute POSIX paths without scheme and host. Every operation ends within the timeout of
the storage.
"""

from __future__ import annotations

import itertools
import posixpath
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from submarine_jobs.errors import AclsDisabledError, StorageError
from submarine_runtime import storage as runtime_storage
from submarine_runtime.protocol import JobStore
from submarine_runtime.translation import _

if TYPE_CHECKING:
    from submarine_runtime.storage import Store

#: Modes of files and directories: for their owner only, or also for the entries of an ACL, whose
#: mask is the middle digit.
PRIVATE_FILE, SHARED_FILE = 0o600, 0o640
PRIVATE_DIRECTORY, SHARED_DIRECTORY = 0o700, 0o750
_GROUP_READS = 0o040
#: Default ports of a NameNode by scheme.
DEFAULT_PORTS = {"hdfs": 8020, "webhdfs": 9870, "swebhdfs": 9871}
#: Maximum number of entries of one listing or one tree walk.
MAX_ENTRIES = 200_000


def _normal(path: str) -> str:
    return "/" + posixpath.normpath(path).lstrip("/")


@dataclass(frozen=True)
class Entry:
    """File or directory: base name, size in bytes, modification time in epoch seconds.

    ``owner`` is the name of the owner in the file system; empty: not known. ``mode`` has the
    permission bits, those of the mask as the group's if there is an ACL; 0: not known.
    ``encrypted`` tells that it is in an encryption zone of HDFS; only ``Storage.inspect`` sets it.
    """

    name: str
    size: int
    is_directory: bool
    modified: float
    owner: str = ""
    mode: int = 0
    encrypted: bool = False

    @property
    def shared(self) -> bool:
        """Whether the mode lets the group or the entries of an ACL read."""
        return bool(self.mode & _GROUP_READS)


@dataclass(frozen=True)
class Acl:
    """ACL of a file or directory: owner, permission bits, and entries such as ``user:bob:r-x``.

    The middle digit of ``mode`` is the mask, if there are entries.
    """

    owner: str
    mode: int
    entries: tuple[str, ...] = ()


class Storage(ABC):
    """File system that stores job directories.

    All methods raise ``StorageError`` if the file system fails or does not respond in time, and
    ``FileNotFoundError`` for a missing path.
    """

    #: Prefix of the URLs of this storage, ``hdfs://host:port`` or ``file://``.
    prefix: str
    #: Other prefixes of the same file system, such as ``webhdfs://host:port``; lower case.
    addresses: Collection[str] = ()
    #: Returns the URI of a path or a ``viewfs://`` URI, where the default file system is viewfs.
    mounted: Callable[[str], str | None] | None = None

    def url(self, path: str) -> str:
        """Return the URL of ``path``."""
        return self.prefix + path

    def path_of(self, uri: str) -> str | None:
        """Return the path of ``uri`` in this file system; None if it is in another one.

        An absolute path without a scheme is in this file system. A user in the URI is ignored, as
        in Hadoop: requests use the user of the profile.
        """
        if self.mounted is not None and uri.lower().startswith(("/", "viewfs://")):
            uri = self.mounted(uri) or uri
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
    def publish(self, path: str, data: bytes, *, mode: int = PRIVATE_FILE) -> None:
        """Write a file atomically by rename, replace an existing one, and create parents."""

    @abstractmethod
    def publish_exclusive(self, path: str, data: bytes, *, mode: int = PRIVATE_FILE) -> bool:
        """Write a file atomically unless it exists; return False if it does.

        Safe to repeat after a lost response: returns True if the existing content equals ``data``.
        """

    @abstractmethod
    def list_directory(self, path: str) -> list[Entry]:
        """List a directory sorted by name, without temporary files."""

    @abstractmethod
    def stat(self, path: str) -> Entry | None:
        """Return the entry of ``path``, or None."""

    def inspect(self, path: str) -> Entry | None:
        """Return the entry of ``path``, or None; with ``Entry.encrypted``."""
        return self.stat(path)

    def in_encryption_zone(self, path: str) -> bool:
        """Whether a file at ``path`` is, or would be, in an encryption zone.

        The nearest existing directory decides.
        """
        return False

    @abstractmethod
    def make_directory(self, path: str, *, mode: int = PRIVATE_DIRECTORY) -> None:
        """Create a directory and its parents; no error if it exists."""

    @abstractmethod
    def delete(self, path: str, *, recursive: bool = False) -> None:
        """Delete a path; no error if it does not exist."""

    @abstractmethod
    def upload(
        self,
        source: Path,
        path: str,
        progress: Callable[[int], None] | None = None,
        *,
        mode: int = PRIVATE_FILE,
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

    def open_store(self, path: str) -> Store:
        """Return a client of ``path`` with the interface of the agents, for this process.

        It signs in as this process does: containers have tokens in place of a ticket.
        """
        return runtime_storage.open_store(self.job_store(path))

    def acl(self, path: str) -> Acl:
        """Return the ACL of a path.

        Raises
        ------
        AclsDisabledError
            If this file system keeps no ACLs.
        """
        raise AclsDisabledError(_("{url} has no ACLs").format(url=self.url(path)))

    def set_acl(self, path: str, entries: Sequence[str], *, replace: bool) -> None:
        """Replace the ACL of a path, or add entries to it and replace those of the same names.

        Parameters
        ----------
        entries
            In the form of ``hdfs dfs -setfacl``: ``user:bob:r-x``, ``default:mask::r-x``.

        Raises
        ------
        AclsDisabledError
            If this file system keeps no ACLs.
        """
        raise AclsDisabledError(_("{url} has no ACLs").format(url=self.url(path)))

    def may_execute(self, path: str) -> bool:
        """Whether the mode or the ACL of a file lets this user execute it.

        Always true for a file system without ACLs, which cannot tell.
        """
        return True

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
