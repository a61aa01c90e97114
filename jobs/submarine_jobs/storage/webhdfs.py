"""Store job directories on HDFS through WebHDFS, as a user other than that of the process.

Every request names its user, so one process can act as several users, each with its own storage.
Transient failures are retried within the time limit of the call. ``hdfs`` is faster for large
files, but acts only as the user of the process.
"""

from __future__ import annotations

import posixpath
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from submarine_jobs.errors import StorageError
from submarine_jobs.storage.base import (
    DEFAULT_PORTS,
    PRIVATE_DIRECTORY,
    PRIVATE_FILE,
    SHARED_FILE,
    Entry,
)
from submarine_jobs.storage.client_calls import (
    TRANSFER_FACTOR,
    ClientStorage,
    read_chunks,
    visible_entries,
)
from submarine_runtime.cluster_http import Access, simple_access
from submarine_runtime.protocol import JobStore
from submarine_runtime.storage import NotFoundError, Store, WebHdfsStore, retry
from submarine_runtime.translation import _

T = TypeVar("T")
#: Fraction of the time limit in which a call is retried; the rest is for the last response.
_PATIENCE = 0.9


class WebHdfsStorage(ClientStorage):
    """HDFS as one user; a process can have any number of instances.

    Parameters
    ----------
    default_fs
        ``hdfs://host:port`` or ``hdfs://nameservice``.
    webhdfs
        Base URLs of the web ports of the NameNodes.
    user
        User of every request.
    access
        Authentication and certificates; None: simple authentication of the user.
    timeout
        Time limit of one call in seconds.
    gateway
        Whether ``webhdfs`` is an HttpFS gateway.
    """

    def __init__(
        self,
        default_fs: str,
        *,
        webhdfs: Sequence[str],
        user: str,
        access: Access | None = None,
        timeout: float = 20.0,
        gateway: bool = False,
    ) -> None:
        super().__init__(default_fs, timeout)
        self._webhdfs = list(webhdfs)
        self._user = user
        self._gateway = gateway
        self._access = access or simple_access(user)

    def _make_client(self, *, shared: bool) -> WebHdfsStore:
        if not self._webhdfs:
            raise StorageError(
                _(
                    "{prefix} cannot be accessed as {user}: the address of its WebHDFS is not "
                    "known, and hdfs-native acts only as the user of the process."
                ).format(prefix=self.prefix, user=self._user),
                _(
                    "Name the cluster's client configuration (hadoop_conf_dir), or set "
                    "HADOOP_USER_NAME={user} for the whole process."
                ).format(user=self._user),
            )
        access, gateway = self._access, self._gateway
        return WebHdfsStore(self._webhdfs, "", access, self._timeout, shared, gateway)

    @cached_property
    def _client(self) -> WebHdfsStore:
        return self._make_client(shared=False)

    @cached_property
    def _shared(self) -> WebHdfsStore:
        return self._make_client(shared=True)

    @property
    def _web(self) -> WebHdfsStore:
        return self._client

    def _writer(self, mode: int) -> WebHdfsStore:
        """Return the client that creates files of this mode."""
        if mode not in (PRIVATE_FILE, SHARED_FILE):
            raise ValueError(
                _("WebHDFS storage creates files with mode 600 or 640, not {mode:o}").format(
                    mode=mode
                )
            )
        return self._client if mode == PRIVATE_FILE else self._shared

    def _call(
        self, operation: str, path: str, work: Callable[[WebHdfsStore], T], factor: int = 1
    ) -> T:
        """Retry while a NameNode restarts, as hdfs-native does: all operations are repeatable."""
        until = time.monotonic() + _PATIENCE * factor * self._timeout
        return super()._call(
            operation, path, lambda client: retry(lambda: work(client), until), factor
        )

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        """See ``Storage.read``."""

        def work(client: WebHdfsStore) -> bytes:
            found = client.stat(path)
            if found is None:
                raise NotFoundError(path)
            end = found.size if length is None else min(found.size, offset + length)
            return b"".join(client.stream(path, offset, end - offset)) if end > offset else b""

        return self._call("read", path, work)

    def publish(self, path: str, data: bytes, *, mode: int = PRIVATE_FILE) -> None:
        """See ``Storage.publish``."""
        self._call("write", path, lambda _client: self._writer(mode).publish(path, data))

    def publish_exclusive(self, path: str, data: bytes, *, mode: int = PRIVATE_FILE) -> bool:
        """See ``Storage.publish_exclusive``; the NameNode renames without overwriting."""

        def work(_client: WebHdfsStore) -> bool:
            return self._writer(mode).publish_exclusive(path, data)

        return self._call("write", path, work)

    def list_directory(self, path: str) -> list[Entry]:
        """See ``Storage.list_directory``."""

        def work(client: WebHdfsStore) -> list[Entry]:
            found = client.entries(path)
            if not found and client.stat(path) is None:
                raise NotFoundError(path)
            return [Entry(*entry) for entry in found]

        return visible_entries(self._call("list", path, work))

    def stat(self, path: str) -> Entry | None:
        """See ``Storage.stat``."""
        found = self._call("look at", path, lambda client: client.stat(path))
        return Entry(*found) if found is not None else None

    def make_directory(self, path: str, *, mode: int = PRIVATE_DIRECTORY) -> None:
        """See ``Storage.make_directory``."""
        if mode != PRIVATE_DIRECTORY:
            raise ValueError(
                _("WebHDFS storage creates directories with mode 700, not {mode:o}").format(
                    mode=mode
                )
            )
        self._call("create", path, lambda client: client.make_directory(path))

    def delete(self, path: str, *, recursive: bool = False) -> None:
        """See ``Storage.delete``."""
        try:
            self._call("delete", path, lambda client: client.delete(path, recursive))
        except FileNotFoundError:
            return

    def upload(
        self,
        source: Path,
        path: str,
        progress: Callable[[int], None] | None = None,
        *,
        mode: int = PRIVATE_FILE,
    ) -> None:
        """See ``Storage.upload``."""

        def work(_client: WebHdfsStore) -> None:
            with source.open("rb") as stream:
                blocks = read_chunks(stream, progress)
                self._writer(mode).put(path, blocks, source.stat().st_size)

        self._call("write", path, work, TRANSFER_FACTOR)

    def download(self, path: str, target: Path) -> None:
        """See ``Storage.download``."""

        def work(client: WebHdfsStore) -> None:
            with target.open("wb") as stream:
                for piece in client.stream(path):
                    stream.write(piece)

        self._call("read", path, work, TRANSFER_FACTOR)

    def job_store(self, path: str) -> JobStore:
        """See ``Storage.job_store``."""
        store = container_store(path, self._webhdfs, self._user, self._access, self.prefix)
        return replace(store, gateway=self._gateway)

    def open_store(self, path: str) -> Store:
        """See ``Storage.open_store``."""
        access, gateway = self._access, self._gateway
        return WebHdfsStore(self._webhdfs, path, access, self._timeout, gateway=gateway)


def webhdfs_place(
    uri: str, user: str, urls: Sequence[str] = (), access: Access | None = None
) -> tuple[WebHdfsStorage, str] | None:
    """Return the file system of a URI and the path in it; None: it is not one of WebHDFS.

    Parameters
    ----------
    urls
        Base URLs of the web ports of its NameNodes; empty: that of a ``webhdfs://host:port``.
    """
    scheme, _colon, rest = uri.partition("://")
    authority, _slash, path = rest.partition("/")
    authority, scheme = authority.rpartition("@")[2], scheme.lower()
    web = {"webhdfs": "http", "swebhdfs": "https"}.get(scheme)
    if not authority or not (urls or web):
        return None
    if not urls:
        default = "" if ":" in authority else f":{DEFAULT_PORTS[scheme]}"
        urls = [f"{web}://{authority}{default}"]
    prefix = f"{scheme}://{authority}"
    storage = WebHdfsStorage(prefix, webhdfs=urls, user=user, access=access)
    return storage, "/" + posixpath.normpath(f"/{path}").lstrip("/")


def container_store(
    path: str, urls: Sequence[str], user: str | None, access: Access, default_fs: str
) -> JobStore:
    """Return a directory on HDFS for containers, which sign in with tokens where tickets rule."""
    place = default_fs.removeprefix("hdfs://")
    return JobStore(
        kind="webhdfs",
        path=path,
        webhdfs=list(urls),
        user=user,
        authentication=access.authentication.in_containers,
        namenode=place if ":" in place else "",
        token_interval=access.authentication.token_interval,
        ca=access.ca,
    )
