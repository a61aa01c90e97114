"""Job directories on HDFS, through hdfs-native (no JVM); agents in containers use WebHDFS.

Reads the cluster's addresses from the Hadoop client configuration. Does not do Kerberos yet.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from submarine_jobs.errors import StorageError
from submarine_jobs.profile import hadoop_user
from submarine_jobs.storage.base import Entry, Storage
from submarine_jobs.storage.timed_call import call_within
from submarine_runtime.agent.store import StoreError
from submarine_runtime.agent.store_webhdfs import WebHdfsStore
from submarine_runtime.protocol.launch import JobStore
from submarine_runtime.protocol.layout import TEMPORARY_PREFIX

T = TypeVar("T")
CHUNK = 4 << 20
#: Bytes up to which a file is small.
SMALL_FILE = 1 << 20
_USER = "HADOOP_USER_NAME"
#: A transfer of a whole file may take this many times the limit of a single call.
TRANSFER_FACTOR = 30


class HdfsStorage(Storage):
    """HDFS as one user with simple authentication.

    Parameters
    ----------
    default_fs
        ``hdfs://host:port`` or ``hdfs://nameservice``.
    conf_dir
        Hadoop client configuration (core-site.xml, hdfs-site.xml).
    webhdfs
        Base URLs of the NameNodes' web ports, for agents.
    user
        HDFS user; None: ``HADOOP_USER_NAME`` or the account's name, as Hadoop does it. Another
        one is put into the environment of this process: it can act as one HDFS user only.
    timeout
        Seconds that one call may take.
    """

    def __init__(
        self,
        default_fs: str,
        *,
        conf_dir: Path | None = None,
        webhdfs: Sequence[str] = (),
        user: str | None = None,
        timeout: float = 20.0,
    ) -> None:
        self.prefix = default_fs.rstrip("/")
        self._conf_dir = conf_dir
        self._webhdfs = list(webhdfs)
        self._user = user
        self._timeout = timeout

    @cached_property
    def _client(self) -> Any:
        from hdfs_native import Client

        if self._user and self._user != hadoop_user():
            # hdfs-native takes the user of simple authentication from the environment, whenever
            # it connects: one process acts as one HDFS user.
            os.environ[_USER] = self._user
        return Client(self.prefix, config_dir=str(self._conf_dir) if self._conf_dir else None)

    def _call(self, doing: str, path: str, work: Callable[[Any], T], factor: int = 1) -> T:
        try:
            return call_within(self._timeout * factor, lambda: work(self._client))
        except TimeoutError as exc:
            raise StorageError(
                f"HDFS at {self.prefix} did not answer in time to {doing} {path}: {exc}.",
                "Check that the NameNode is up: `submarine doctor`.",
            ) from exc
        except FileNotFoundError as exc:
            raise FileNotFoundError(f"{self.prefix}{path}") from exc
        except FileExistsError:
            raise
        except Exception as exc:
            raise StorageError(*_sentence(doing, self.prefix + path, exc)) from exc

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        """See ``Storage.read``."""

        def work(client: Any) -> bytes:
            reader = client.read(path)
            end = len(reader) if length is None else min(len(reader), offset + length)
            return bytes(reader.read_range(offset, end - offset)) if end > offset else b""

        return self._call("read", path, work)

    def publish(self, path: str, data: bytes, *, mode: int = 0o600) -> None:
        """See ``Storage.publish``."""
        temporary = self._temporary_name(path)

        def work(client: Any) -> None:
            self._write_data(client, temporary, data, mode)
            client.rename(temporary, path, overwrite=True)

        self._call("write", path, work)

    def publish_exclusive(self, path: str, data: bytes, *, mode: int = 0o600) -> bool:
        """See ``Storage.publish_exclusive``; the NameNode decides: rename without overwrite."""
        temporary = self._temporary_name(path)

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
            return [_entry(status) for status in client.list_status(path)]

        found = [e for e in self._call("list", path, work) if not e.name.startswith(".tmp-")]
        return sorted(found, key=lambda entry: entry.name)

    def stat(self, path: str) -> Entry | None:
        """See ``Storage.stat``."""
        try:
            return self._call("look at", path, lambda client: _entry(client.get_file_info(path)))
        except FileNotFoundError:
            return None

    def make_directory(self, path: str, *, mode: int = 0o700) -> None:
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

    def upload(self, source: Path, path: str, heard: Callable[[int], None] | None = None) -> None:
        """See ``Storage.upload``."""
        temporary = self._temporary_name(path)

        def work(client: Any) -> None:
            with source.open("rb") as stream:
                self._write(client, temporary, _pieces(stream, heard), 0o600)
            client.rename(temporary, path, overwrite=True)

        self._call("write", path, work, TRANSFER_FACTOR)

    def download(self, path: str, target: Path) -> None:
        """See ``Storage.download``."""

        def work(client: Any) -> None:
            reader = client.read(path)
            with target.open("wb") as stream:
                for piece in reader.read_range_stream(0, len(reader)):
                    stream.write(piece)

        self._call("read", path, work, TRANSFER_FACTOR)

    def job_store(self, path: str) -> JobStore:
        """See ``Storage.job_store``."""
        return JobStore(kind="webhdfs", path=path, webhdfs=self._webhdfs, user=self._user)

    def _temporary_name(self, path: str) -> str:
        directory, _, name = path.rpartition("/")
        return f"{directory}/{TEMPORARY_PREFIX}{name}.{secrets.token_hex(6)}"

    def _write_data(self, client: Any, path: str, data: bytes, mode: int) -> None:
        """Write a small file through WebHDFS, 10 to 30 ms, and any other through hdfs-native.

        hdfs-native asks the NameNode to close the file before the DataNode has reported its block,
        and then sleeps 500 ms: a submit of five small files took seconds.
        """
        if self._webhdfs and mode == 0o600 and 0 < len(data) <= SMALL_FILE:
            try:
                self._small_files._create(path.lstrip("/"), [data], len(data))
                return
            except (StoreError, OSError):
                pass  # hdfs-native says why, if it fails as well
        self._write(client, path, [data], mode)

    @cached_property
    def _small_files(self) -> WebHdfsStore:
        return WebHdfsStore(self._webhdfs, "", hadoop_user(self._user), self._timeout / 2)

    @staticmethod
    def _write(client: Any, path: str, pieces: Any, mode: int) -> None:
        from hdfs_native import WriteOptions

        options = WriteOptions(permission=mode, create_parent=True, overwrite=True)
        with client.create(path, options) as writer:
            for piece in pieces:
                writer.write(piece)


def _pieces(stream: BinaryIO, heard: Callable[[int], None] | None) -> Iterator[bytes]:
    done = 0
    while piece := stream.read(CHUNK):
        yield piece
        done += len(piece)
        if heard is not None:
            heard(done)


def _entry(status: Any) -> Entry:
    name = status.path.rstrip("/").rpartition("/")[2]
    return Entry(name, status.length, status.isdir, status.modification_time / 1000, status.owner)


def _sentence(doing: str, url: str, exc: Exception) -> tuple[str, str]:
    text = " ".join(str(exc).split())[:300]
    if "SafeMode" in text or "safe mode" in text:
        return (
            f"Cannot {doing} {url}: HDFS is in safe mode and takes no writes.",
            "Wait until the NameNode leaves it, or ask the operator.",
        )
    if "AccessControl" in text or "Permission denied" in text:
        return (
            f"Cannot {doing} {url}: permission denied.",
            "Choose a job root that you own (job_root in submarine.toml).",
        )
    if "QuotaExceeded" in text:
        return f"Cannot {doing} {url}: the HDFS quota is used up.", "Free space or ask for more."
    return f"Cannot {doing} {url}: {text}.", "`submarine doctor` checks HDFS."
