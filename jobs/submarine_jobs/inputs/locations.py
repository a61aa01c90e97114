"""Find the place of an input's URI: a file system of the cluster, or a remote store."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import unquote, urlsplit

from submarine_jobs.errors import UsageError
from submarine_jobs.storage import Storage
from submarine_runtime.translation import _

#: Schemes that the job's own fsspec reads, each with the module that it needs besides fsspec.
REMOTE = {
    "s3": "s3fs",
    "s3a": "s3fs",
    "gs": "gcsfs",
    "gcs": "gcsfs",
    "http": "aiohttp",
    "https": "aiohttp",
}
WEB = ("http", "https")
#: Schemes of Hadoop's file systems; ``file`` and paths are those of the job directory.
HADOOP = ("hdfs", "webhdfs", "swebhdfs", "viewfs")
HUB = "hf"
#: Marks a text file with one URI per line.
MANIFEST = "@"
MAGIC = re.compile(r"[*?\[]")
_USER = re.compile(r"//[^/@]*@")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")


class FileSystems(Protocol):
    """The file systems of a cluster besides that of the job directory; a backend implements it."""

    def other_file_system(self, uri: str) -> tuple[Storage, str] | None:
        """Return the file system of ``uri`` and the path in it; None: jobs cannot read it."""


@dataclass(frozen=True)
class Place:
    """A path in a file system that agents and this process read.

    ``prefix`` is that of the sources in listings: empty for the file system of the job directory.
    """

    storage: Storage
    path: str
    prefix: str = ""

    @property
    def url(self) -> str:
        """The URL of the path."""
        return self.storage.url(self.path)


@dataclass(frozen=True)
class RemotePlace:
    """A URI that the job's own fsspec reads."""

    uri: str

    @property
    def path(self) -> str:
        """Authority and path without the scheme; for http also the query."""
        rest = self.uri.partition("://")[2]
        return unquote(rest) if scheme_of(self.uri) in WEB else rest


@dataclass(frozen=True)
class Locator:
    """Finds the place of a URI.

    Parameters
    ----------
    storage
        The file system of the job directory.
    cluster
        The other file systems; None: there are none.
    """

    storage: Storage
    cluster: FileSystems | None = None

    def find(self, option: str, uri: str) -> Place | RemotePlace:
        """Return the place of ``uri``.

        Parameters
        ----------
        option
            Names the input in messages: ``--input train``.

        Raises
        ------
        UsageError
            If no job reads such a URI.
        """
        scheme = scheme_of(uri)
        if scheme in REMOTE:
            if not urlsplit(uri).netloc:
                raise UsageError(
                    _("{option}: {uri} names no host or bucket.").format(
                        option=option, uri=shown(uri)
                    ),
                    _("Write for example s3://bucket/data/train."),
                )
            return RemotePlace(uri)
        path = self.storage.path_of(uri)
        if path is not None:
            return Place(self.storage, path)
        found = self.cluster.other_file_system(uri) if self.cluster and scheme in HADOOP else None
        if found is not None:
            storage, path = found
            same = storage is self.storage
            return Place(storage, path, "" if same else storage.prefix)
        if scheme in (*HADOOP, "file", ""):
            raise UsageError(
                _(
                    "{option}={uri} is not in the file system of the job directory, {prefix}."
                ).format(option=option, uri=shown(uri), prefix=self.storage.prefix),
                _("Copy it there, or let the program read it by itself with --input_path."),
            )
        raise UsageError(
            _("{option}={uri}: no job reads {scheme}://.").format(
                option=option, uri=shown(uri), scheme=scheme
            ),
            _("The schemes are {schemes}.").format(
                schemes=", ".join(f"{name}://" for name in (*HADOOP, *REMOTE, HUB))
            ),
        )


def scheme_of(uri: str) -> str:
    """Return the scheme of a URI in lower case; empty: it is a path."""
    match = _SCHEME.match(uri)
    return match[1].lower() if match else ""


def without_user(uri: str) -> str:
    """Return ``uri`` without user and password, for display."""
    return _USER.sub("//", uri)


def shown(uri: str) -> str:
    """Return ``uri`` as messages show it."""
    return without_user(uri)[:200]


#: Finds the place of one URI of a manifest.
Finder = Callable[[str], "Place | RemotePlace"]
