"""HDFS as an fsspec file system, for pyarrow, pandas, torch and others: reading and writing.

A path is absolute in the default file system, or a URI that names another one. The modules of this
package do not import this one, because fsspec is optional.
"""

from __future__ import annotations

import importlib
import shutil
from datetime import datetime, timezone
from typing import Any, Callable, TypeVar

from submarine_data.remote.choice import remote_file_system
from submarine_data.remote.configuration import Place, split_uri
from submarine_data.remote.errors import MissingFileError, RemoteError
from submarine_data.remote.range_reader import PATIENCE
from submarine_data.remote.webhdfs import WebHdfsFileSystem, patiently
from submarine_data.remote.writer import AtomicWriter
from submarine_runtime.storage import Entry, WebHdfsStore
from submarine_runtime.translation import _

#: Optional, so not a dependency of this package.
fsspec: Any = importlib.import_module("fsspec")
T = TypeVar("T")


class HdfsFileSystem(fsspec.AbstractFileSystem):  # type: ignore[misc]  # fsspec has no types
    """Files of HDFS with the credentials of this process.

    A file that is opened with ``wb`` appears with its whole content when it is closed, by one
    rename that replaces any earlier file; an exception inside its ``with`` block writes nothing.
    There is no ``ab``, and no fsspec transaction.

    Parameters
    ----------
    client
        Client that reads: ``hdfs-native``, ``webhdfs``, or None for the faster one that is
        installed. All other operations use WebHDFS.
    patience
        Seconds that an operation waits for HDFS.
    """

    protocol = ("hdfs", "webhdfs", "swebhdfs", "viewfs")
    root_marker = "/"

    def __init__(
        self, client: str | None = None, patience: float = PATIENCE, **storage_options: Any
    ) -> None:
        super().__init__(**storage_options)
        self._client, self._patience = client, patience
        self._web = WebHdfsFileSystem(patience=patience)

    @property
    def fsid(self) -> str:
        """See fsspec."""
        return "submarine-hdfs"

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        """Return the path; that of another file system stays a URI."""
        if isinstance(path, list):
            return [cls._strip_protocol(one) for one in path]
        scheme, authority, rest = split_uri(str(path))
        if not scheme:
            return "/" + rest.strip("/")
        stripped = "/" + rest.strip("/")
        return f"{scheme}://{authority}{stripped}" if authority else stripped

    @classmethod
    def _parent(cls, path: str) -> str:
        scheme, authority, rest = split_uri(cls._strip_protocol(path))
        above = "/" + rest.rpartition("/")[0].strip("/")
        return f"{scheme}://{authority}{above}" if scheme else above

    def unstrip_protocol(self, name: str) -> str:
        """See fsspec."""
        path = str(self._strip_protocol(name))
        return path if "://" in path else f"hdfs://{path}"

    @staticmethod
    def _get_kwargs_from_urls(path: str) -> dict[str, Any]:
        return {}

    def _located(self, path: str) -> tuple[Place, WebHdfsStore]:
        return self._web.located(self.unstrip_protocol(path))

    def _call(self, path: str, work: Callable[[WebHdfsStore, str], T]) -> T:
        place, store = self._located(path)
        return patiently(
            self.unstrip_protocol(path), lambda: work(store, place.path), self._patience
        )

    def _entry(self, path: str) -> Entry | None:
        return self._call(path, lambda store, name: store.stat(name))

    def info(self, path: str, **kwargs: Any) -> dict[str, Any]:
        """See fsspec."""
        path = self._strip_protocol(path)
        entry = self._entry(path)
        if entry is None:
            raise self._missing(path)
        return _details(path, entry)

    def exists(self, path: str, **kwargs: Any) -> bool:
        """See fsspec; an unavailable HDFS is an error, not a missing file."""
        return self._entry(self._strip_protocol(path)) is not None

    def ls(self, path: str, detail: bool = True, **kwargs: Any) -> list[Any]:
        """See fsspec."""
        path = self._strip_protocol(path)
        entries = self._call(path, lambda store, name: store.entries(name))
        if entries:
            base = path.rstrip("/")
            found = [_details(f"{base}/{entry.name}", entry) for entry in entries]
        else:
            info = self.info(path)
            found = [] if info["type"] == "directory" else [info]
        return found if detail else [one["name"] for one in found]

    def modified(self, path: str) -> datetime:
        """See fsspec."""
        return datetime.fromtimestamp(self.info(path)["mtime"], timezone.utc)

    def mkdir(self, path: str, create_parents: bool = True, **kwargs: Any) -> None:
        """See fsspec."""
        path = self._strip_protocol(path)
        if self.exists(path):
            raise FileExistsError(_("{path} exists.").format(path=path))
        if not create_parents and not self.exists(self._parent(path)):
            raise self._missing(self._parent(path))
        self.makedirs(path, exist_ok=True)

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        """See fsspec."""
        path = self._strip_protocol(path)
        if not exist_ok and self.exists(path):
            raise FileExistsError(_("{path} exists.").format(path=path))
        self._call(path, lambda store, name: store.make_directory(name))

    def rm(self, path: Any, recursive: bool = False, maxdepth: int | None = None) -> None:
        """See fsspec; a directory that is not empty requires ``recursive``."""
        if maxdepth is not None:
            raise ValueError(_("rm with maxdepth is not supported for HDFS."))
        paths = path if isinstance(path, list) else [path]
        for one in paths:
            names = self.expand_path(one) if "*" in str(one) else [self._strip_protocol(one)]
            for name in names:
                self._remove(name, recursive=recursive)

    def _remove(self, path: str, *, recursive: bool) -> None:
        if not self.exists(path):
            raise self._missing(path)
        self._call(path, lambda store, name: store.delete(name, recursive))

    def rm_file(self, path: str) -> None:
        """See fsspec."""
        self._remove(self._strip_protocol(path), recursive=False)

    def _rm(self, path: str) -> None:
        self.rm_file(path)

    def rmdir(self, path: str) -> None:
        """See fsspec."""
        self.rm_file(path)

    def mv(self, path1: str, path2: str, **kwargs: Any) -> None:
        """Rename a file or directory in one step; a file at ``path2`` is replaced.

        Raises
        ------
        FileExistsError
            If ``path2`` is a directory.
        RemoteError
            If the paths are in different file systems, or HDFS refuses.
        """
        source, target = self._strip_protocol(path1), self._strip_protocol(path2)
        place, other = self._located(source)[0], self._located(target)[0]
        if place.service != other.service:
            raise RemoteError(
                _("{source} and {target} are in different file systems.").format(
                    source=source, target=target
                )
            )
        entry, taken = self._entry(source), self._entry(target)
        if entry is None:
            raise self._missing(source)
        if taken is not None and taken.is_directory:
            raise FileExistsError(_("{path} exists.").format(path=target))
        self._call(source, lambda store, name: store.move(name, other.path))

    def cp_file(self, path1: str, path2: str, **kwargs: Any) -> None:
        """See fsspec; the bytes pass through this process."""
        if self.isdir(path1):
            self.makedirs(path2, exist_ok=True)
            return
        with self.open(path1, "rb") as source, self.open(path2, "wb") as target:
            shutil.copyfileobj(source, target, 4 << 20)

    def _open(
        self,
        path: str,
        mode: str = "rb",
        block_size: int | None = None,
        autocommit: bool = True,
        cache_options: Any = None,
        **kwargs: Any,
    ) -> Any:
        uri = self.unstrip_protocol(path)
        if mode == "rb":
            return remote_file_system(uri, self._client).open(uri)
        if mode != "wb" or not autocommit:
            raise ValueError(
                _(
                    "{uri} cannot be opened with mode {mode}: HDFS files are read or replaced."
                ).format(uri=uri, mode=mode)
            )
        return AtomicWriter(self._web, uri, self._patience)

    def _missing(self, path: str) -> MissingFileError:
        return MissingFileError(
            _("There is no file {uri}.").format(uri=self.unstrip_protocol(path))
        )


def _details(path: str, entry: Entry) -> dict[str, Any]:
    return {
        "name": path,
        "size": entry.size,
        "type": "directory" if entry.is_directory else "file",
        "mtime": entry.modified,
        "owner": entry.owner,
        "mode": entry.mode,
    }
