"""Store job directories on HDFS with hdfs-native (no JVM); agents in containers use WebHDFS.

``HdfsStorage`` acts only as the user of this process; ``hdfs_storage`` selects WebHDFS for other
users.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from submarine_jobs.errors import StorageError
from submarine_jobs.model import hadoop_user
from submarine_jobs.storage.base import (
    PRIVATE_DIRECTORY,
    PRIVATE_FILE,
    SHARED_FILE,
    Entry,
    bounded,
)
from submarine_jobs.storage.client_calls import (
    TRANSFER_FACTOR,
    ClientStorage,
    read_chunks,
    temporary_path,
    visible_entries,
)
from submarine_jobs.storage.webhdfs import WebHdfsStorage, container_store
from submarine_runtime.cluster_http import Access, simple_access
from submarine_runtime.interpreter_exit import native_calls
from submarine_runtime.protocol import JobStore
from submarine_runtime.storage import Store, StoreError, WebHdfsStore
from submarine_runtime.translation import _

T = TypeVar("T")
#: Maximum size of a file that is written through WebHDFS, in bytes.
SMALL_FILE = 1 << 20


class HdfsStorage(ClientStorage):
    """HDFS as the user of this process; its ticket is that of ``KRB5CCNAME``.

    Parameters
    ----------
    default_fs
        ``hdfs://host:port`` or ``hdfs://nameservice``.
    conf_dir
        Hadoop client configuration (core-site.xml, hdfs-site.xml).
    webhdfs
        Base URLs of the web ports of the NameNodes, for agents and small files.
    user
        Name of the user for agents; None: ``HADOOP_USER_NAME`` or the account, as in Hadoop.
    access
        Access to WebHDFS; None: simple authentication of the user.
    timeout
        Time limit of one call in seconds.
    """

    def __init__(
        self,
        default_fs: str,
        *,
        conf_dir: Path | None = None,
        webhdfs: Sequence[str] = (),
        user: str | None = None,
        access: Access | None = None,
        timeout: float = 20.0,
    ) -> None:
        super().__init__(default_fs, timeout)
        self._conf_dir = conf_dir
        self._webhdfs = list(webhdfs)
        self._user = user
        self._access = access or simple_access(hadoop_user(user))

    @cached_property
    def _client(self) -> Any:
        # cost: hdfs_native (a native library), which small files do not need.
        from hdfs_native import Client

        with native_calls.call():
            return Client(self.prefix, config_dir=str(self._conf_dir) if self._conf_dir else None)

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        """See ``Storage.read``."""

        def work(client: Any) -> bytes:
            reader = client.read(path)
            end = len(reader) if length is None else min(len(reader), offset + length)
            return bytes(reader.read_range(offset, end - offset)) if end > offset else b""

        return self._call("read", path, work)

    def publish(self, path: str, data: bytes, *, mode: int = PRIVATE_FILE) -> None:
        """See ``Storage.publish``."""
        temporary = temporary_path(path)

        def work(client: Any) -> None:
            self._write_data(client, temporary, data, mode)
            client.rename(temporary, path, overwrite=True)

        self._call("write", path, work)

    def publish_exclusive(self, path: str, data: bytes, *, mode: int = PRIVATE_FILE) -> bool:
        """See ``Storage.publish_exclusive``; the NameNode renames without overwriting."""
        temporary = temporary_path(path)

        def work(client: Any) -> bool:
            self._write_data(client, temporary, data, mode)
            try:
                client.rename(temporary, path, overwrite=False)
            except FileExistsError:
                client.delete(temporary)
                return False
            return True

        if self._call("write", path, work):
            return True
        return self.read(path) == data

    def list_directory(self, path: str) -> list[Entry]:
        """See ``Storage.list_directory``."""

        def work(client: Any) -> list[Entry]:
            return bounded(_entry(status) for status in client.list_status(path))

        return visible_entries(self._call("list", path, work))

    def stat(self, path: str) -> Entry | None:
        """See ``Storage.stat``."""
        try:
            return self._call("look at", path, lambda client: _entry(client.get_file_info(path)))
        except FileNotFoundError:
            return None

    def inspect(self, path: str) -> Entry | None:
        """See ``Storage.inspect``: by WebHDFS, because hdfs-native does not tell the zone."""
        if not self._webhdfs:
            return self.stat(path)

        def work(client: Any) -> Entry | None:
            try:
                found = self._web.stat(path)
            except StoreError:
                # The web ports may be closed to this machine: containers use them.
                return _entry(client.get_file_info(path))
            return Entry(*found) if found is not None else None

        try:
            return self._call("look at", path, work)
        except FileNotFoundError:
            return None

    def make_directory(self, path: str, *, mode: int = PRIVATE_DIRECTORY) -> None:
        """See ``Storage.make_directory``."""
        self._call(
            "create",
            path,
            lambda client: client.mkdirs(path, permission=mode, create_parent=True),
        )

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
        temporary = temporary_path(path)

        def work(client: Any) -> None:
            with source.open("rb") as stream:
                self._write(client, temporary, read_chunks(stream, progress), mode)
            client.rename(temporary, path, overwrite=True)

        self._call("write", path, work, TRANSFER_FACTOR)

    def download(self, path: str, target: Path) -> None:
        """See ``Storage.download``."""

        def work(client: Any) -> None:
            reader = client.read(path)
            with target.open("wb") as stream:
                for piece in reader.read_range_stream(0, len(reader)):
                    native_calls.check()
                    stream.write(piece)

        self._call("read", path, work, TRANSFER_FACTOR)

    def job_store(self, path: str) -> JobStore:
        """See ``Storage.job_store``."""
        return container_store(path, self._webhdfs, self._user, self._access, self.prefix)

    def open_store(self, path: str) -> Store:
        """See ``Storage.open_store``."""
        return WebHdfsStore(self._webhdfs, path, self._access, self._timeout / 2)

    def _call(self, operation: str, path: str, work: Callable[[Any], T], factor: int = 1) -> T:
        def counted(client: Any) -> T:
            with native_calls.call():
                return work(client)

        return super()._call(operation, path, counted, factor)

    def _write_data(self, client: Any, path: str, data: bytes, mode: int) -> None:
        """Write a small file through WebHDFS (10 to 30 ms) and any other through hdfs-native.

        hdfs-native closes the file before the DataNode reports its block and then sleeps 500 ms, so
        a submit of five small files would take seconds.
        """
        clients = {PRIVATE_FILE: self._web, SHARED_FILE: self._shared} if self._webhdfs else {}
        small = clients.get(mode) if 0 < len(data) <= SMALL_FILE else None
        if small is not None:
            try:
                small.create(path.lstrip("/"), [data], len(data))
                return
            except (StoreError, OSError):
                pass  # hdfs-native reports the reason if it also fails.
        self._write(client, path, [data], mode)

    @cached_property
    def _web(self) -> WebHdfsStore:
        if not self._webhdfs:
            raise StorageError(
                _("The address of the WebHDFS of {prefix} is not known.").format(
                    prefix=self.prefix
                ),
                _("Name the cluster's client configuration (hadoop_conf_dir)."),
            )
        return WebHdfsStore(self._webhdfs, "", self._access, self._timeout / 2)

    @cached_property
    def _shared(self) -> WebHdfsStore:
        return WebHdfsStore(self._webhdfs, "", self._access, self._timeout / 2, shared=True)

    @staticmethod
    def _write(client: Any, path: str, chunks: Any, mode: int) -> None:
        # cost: hdfs_native, as in `_client`.
        from hdfs_native import WriteOptions

        options = WriteOptions(permission=mode, create_parent=True, overwrite=True)
        with client.create(path, options) as writer:
            for piece in chunks:
                native_calls.check()
                writer.write(piece)


def _entry(status: Any) -> Entry:
    name = status.path.rstrip("/").rpartition("/")[2]
    modified = status.modification_time / 1000
    return Entry(name, status.length, status.isdir, modified, status.owner, status.permission)


def hdfs_storage(
    default_fs: str,
    *,
    conf_dir: Path | None = None,
    webhdfs: Sequence[str] = (),
    addresses: Collection[str] = (),
    user: str | None = None,
    access: Access | None = None,
    process_wide: bool | None = None,
    timeout: float = 20.0,
    gateway: bool = False,
) -> HdfsStorage | WebHdfsStorage:
    """Return the storage for a user: hdfs-native for the process's user, WebHDFS for any other.

    hdfs-native reads user and ticket cache from the environment when it connects, so it cannot act
    as a second user in the same process.

    Parameters
    ----------
    default_fs
        ``hdfs://host:port`` or ``hdfs://nameservice``.
    conf_dir
        Hadoop client configuration (core-site.xml, hdfs-site.xml).
    webhdfs
        Base URLs of the web ports of the NameNodes.
    addresses
        Other prefixes of the same file system; see ``HadoopConf.addresses``.
    user
        HDFS user; None: ``HADOOP_USER_NAME`` or the account, as in Hadoop.
    access
        Access to WebHDFS; None: simple authentication of the user.
    process_wide
        Whether hdfs-native acts as this user; None: if the user is that of the environment.
    timeout
        Time limit of one call in seconds.
    gateway
        Whether ``webhdfs`` is an HttpFS gateway, which is then used for all files.
    """
    storage: HdfsStorage | WebHdfsStorage
    if process_wide is None:
        process_wide = user is None or user == hadoop_user()
    if process_wide and not gateway:
        storage = HdfsStorage(
            default_fs,
            conf_dir=conf_dir,
            webhdfs=webhdfs,
            user=user,
            access=access,
            timeout=timeout,
        )
    else:
        storage = WebHdfsStorage(
            default_fs,
            webhdfs=webhdfs,
            user=hadoop_user(user),
            access=access,
            timeout=timeout,
            gateway=gateway,
        )
    storage.addresses = frozenset(address.lower() for address in addresses)
    return storage
