"""HDFS through hdfs-native, where the job's Python has it: faster than WebHDFS, and without HTTP.

It signs in as the process does: by the tokens of the container, a ticket, or ``HADOOP_USER_NAME``.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
from contextlib import contextmanager
from typing import Any, BinaryIO, Iterator

from submarine_data.file_systems import FileEntry
from submarine_data.remote.configuration import (
    ClientConfiguration,
    Place,
    client_configuration,
    process_user,
)
from submarine_data.remote.errors import RemoteError
from submarine_data.remote.patterns import files_of
from submarine_data.remote.range_reader import PATIENCE, Body, RangeReader, buffered
from submarine_data.remote.waiting import watched
from submarine_data.remote.webhdfs import file_entries, patiently
from submarine_runtime.interpreter_exit import native_calls
from submarine_runtime.kerberos import HDFS_TOKEN, container_tokens
from submarine_runtime.protocol import core_settings, hdfs_settings
from submarine_runtime.storage import Entry, NotFoundError, StoreError
from submarine_runtime.translation import _

#: Earlier releases read files in encryption zones without decrypting them.
MINIMUM = (0, 14, 4)
#: Setting: failures of NameNodes after which a call fails; each is tried.
_ATTEMPTS = "dfs.client.failover.max.attempts"
#: Bytes of one call of a file, at most: one that takes long is reported.
_CALL_BYTES = 1 << 20


def usable(configuration: ClientConfiguration) -> bool:
    """Return whether hdfs-native is installed and signs in as this configuration requires."""
    if not _installed():
        return False
    if configuration.gateway:
        return False  # The NameNodes may be out of reach.
    if configuration.authentication == "token":
        return bool(container_tokens().find(HDFS_TOKEN))
    if configuration.authentication == "simple":
        return configuration.user in ("", process_user())
    return True


@functools.lru_cache(maxsize=1)
def _installed() -> bool:
    if importlib.util.find_spec("hdfs_native") is None:
        return False
    # Loaded here: it takes 20 ms.
    metadata = importlib.import_module("importlib.metadata")
    try:
        words = metadata.version("hdfs-native").split(".")[:3]
        return tuple(map(int, words)) >= MINIMUM
    except (metadata.PackageNotFoundError, ValueError):
        return False


class HdfsNativeFileSystem:
    """Files of HDFS; parameters as of ``WebHdfsFileSystem``."""

    slow_jumps = False

    def __init__(
        self, configuration: ClientConfiguration | None = None, patience: float = PATIENCE
    ) -> None:
        self._configuration = configuration or client_configuration()
        self._patience = patience
        self._clients: dict[str, Any] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_clients": {}}

    def find(self, uri: str) -> list[FileEntry]:
        """See ``FileSystem.find``."""
        place, client = self._located(uri)

        def stat(path: str) -> Entry | None:
            try:
                with _errors(uri):
                    return _entry(client.get_file_info(path))
            except NotFoundError:
                return None

        def entries(path: str) -> list[Entry]:
            try:
                with _errors(uri):
                    return [_entry(status) for status in client.list_status(path)]
            except NotFoundError:
                return []

        found = patiently(uri, lambda: files_of(place.path, stat, entries), self._patience)
        return file_entries(uri, place, found)

    def open(self, uri: str) -> BinaryIO:
        """See ``FileSystem.open``."""
        place, client = self._located(uri)

        def look() -> Any:
            with _errors(uri):
                return client.get_file_info(place.path)

        status = patiently(uri, look, self._patience)
        if status.isdir:
            raise RemoteError(_("{uri} is a directory.").format(uri=uri))

        file = _NativeFile(uri, client, place.path)

        @contextmanager
        def open_range(offset: int, length: int) -> Iterator[Body]:
            yield _NativeBody(file, offset, length)

        reader = RangeReader(uri, status.length, open_range, patience=self._patience)
        return buffered(reader)

    def _located(self, uri: str) -> tuple[Place, Any]:
        place = self._configuration.place(uri)
        if place.service not in self._clients:
            hdfs_native = importlib.import_module("hdfs_native")
            hdfs = self._configuration.hdfs
            settings = {**core_settings(hdfs), **hdfs_settings(hdfs)}
            # Its own attempts take minutes, in which nothing is logged; ours follow.
            settings[_ATTEMPTS] = str(max(map(len, hdfs.rpc.values()), default=1))
            self._clients[place.service] = hdfs_native.Client(place.service, settings)
        return place, self._clients[place.service]


class _NativeFile:
    """A file that is opened once, and after an error again, because its blocks may have moved."""

    def __init__(self, uri: str, client: Any, path: str) -> None:
        self._uri, self._client, self._path = uri, client, path
        self._opened: Any = None

    @contextmanager
    def opened(self) -> Iterator[Any]:
        try:
            with _errors(self._uri):
                if self._opened is None:
                    self._opened = self._client.read(self._path)
                yield self._opened
        except StoreError:
            self._opened = None
            raise


class _NativeBody:
    """A range of a file, received in packets of HDFS: large results would cost as much again."""

    def __init__(self, file: _NativeFile, offset: int, length: int) -> None:
        self._file, self._offset, self._length = file, offset, length
        self._packets: Iterator[bytes] | None = None
        self._packet = memoryview(b"")

    def readinto(self, buffer: memoryview, /) -> int:
        done, most = 0, min(len(buffer), _CALL_BYTES)
        with self._file.opened() as file:
            if self._packets is None:
                self._packets = iter(file.read_range_stream(self._offset, self._length))
            while done < most:
                self._packet = self._packet or memoryview(next(self._packets, b""))
                if not self._packet:
                    break
                count = min(most - done, len(self._packet))
                buffer[done : done + count] = self._packet[:count]
                self._packet = self._packet[count:]
                done += count
        return done


def _entry(status: Any) -> Entry:
    name = status.path.rstrip("/").rpartition("/")[2]
    return Entry(name, status.length, status.isdir, status.modification_time / 1000)


@contextmanager
def _errors(uri: str) -> Iterator[None]:
    """Convert errors of hdfs-native, of which only some names are final."""
    try:
        with watched(uri), native_calls.call():
            yield
    except FileNotFoundError as exc:
        raise NotFoundError(str(exc)) from exc
    except PermissionError as exc:
        raise StoreError(f"Permission denied: {exc}") from exc
    except (OSError, RuntimeError) as exc:
        text = " ".join(str(exc).split())[:300]
        final = any(word in text for word in ("AccessControlException", "Kerberos", "SASL"))
        raise StoreError(_("hdfs-native: {text}").format(text=text), transient=not final) from exc
