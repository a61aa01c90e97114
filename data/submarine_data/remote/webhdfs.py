"""HDFS through WebHDFS, with the standard library."""

from __future__ import annotations

import time
from typing import Any, BinaryIO, Callable, ContextManager, Sequence, TypeVar

from submarine_data.file_systems import FileEntry
from submarine_data.remote.configuration import (
    ClientConfiguration,
    Place,
    client_configuration,
    split_uri,
)
from submarine_data.remote.errors import MissingFileError, RemoteError
from submarine_data.remote.patterns import files_of
from submarine_data.remote.range_reader import PATIENCE, Body, RangeReader, buffered, remote_error
from submarine_data.remote.waiting import Wait
from submarine_runtime.storage import Entry, StoreError, WebHdfsStore, retry
from submarine_runtime.translation import _

T = TypeVar("T")
#: Seconds for each operation of a socket.
_TIMEOUT = 20.0


def file_entries(uri: str, place: Place, found: Sequence[tuple[str, Entry]]) -> list[FileEntry]:
    """Return the files of a URI from their paths and entries.

    Raises
    ------
    MissingFileError
        If there is none.
    """
    if not found:
        raise MissingFileError(_("There is no file {uri}.").format(uri=uri))
    scheme, authority, path = split_uri(uri)
    # Below a mount of viewfs the paths of the file system are others.
    same = (path or "/") == place.path
    prefix = f"{scheme}://{authority}" if same else place.service
    return [FileEntry(f"{prefix}{name}", entry.size, entry.modified) for name, entry in found]


class WebHdfsFileSystem:
    """Files of HDFS; one object serves all file systems of a configuration, and several threads.

    Parameters
    ----------
    configuration
        Addresses and credentials; None: those of this process.
    patience
        Seconds that an operation waits for HDFS.
    """

    slow_jumps = True

    def __init__(
        self, configuration: ClientConfiguration | None = None, patience: float = PATIENCE
    ) -> None:
        self._configuration = configuration or client_configuration()
        self._patience = patience
        self._stores: dict[str, WebHdfsStore] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_stores": {}}

    def find(self, uri: str) -> list[FileEntry]:
        """See ``FileSystem.find``."""
        place, store = self.located(uri)
        found = self._try(uri, lambda: files_of(place.path, store.stat, store.entries))
        return file_entries(uri, place, found)

    def open(self, uri: str) -> BinaryIO:
        """See ``FileSystem.open``."""
        return buffered(self.reader(uri))

    def reader(self, uri: str) -> RangeReader:
        """Return an unbuffered file."""
        place, store = self.located(uri)

        def look() -> dict[str, Any]:
            answer = store.call("GET", place.path, "GETFILESTATUS")
            found = answer.json_object().get("FileStatus")
            return found if isinstance(found, dict) else {}

        status = self._try(uri, look)
        if status.get("type") == "DIRECTORY":
            raise RemoteError(_("{uri} is a directory.").format(uri=uri))

        def open_range(offset: int, length: int) -> ContextManager[Body]:
            return store.opened(place.path, offset, length)

        return RangeReader(
            uri,
            int(status.get("length", 0)),
            open_range,
            patience=self._patience,
            block=int(status.get("blockSize", 0)),
        )

    def located(self, uri: str) -> tuple[Place, WebHdfsStore]:
        """Return the place of a URI, and the client of its file system.

        Raises
        ------
        RemoteError
            If the file system is not known.
        """
        place = self._configuration.place(uri)
        store = self._stores.get(place.service)
        if store is None:
            access = self._configuration.access(place)
            gateway = self._configuration.is_gateway(place)
            store = WebHdfsStore(place.urls, "", access, _TIMEOUT, gateway=gateway, plain=True)
            self._stores[place.service] = store
        return place, store

    def _try(self, uri: str, action: Callable[[], T]) -> T:
        return patiently(uri, action, self._patience)


def patiently(uri: str, action: Callable[[], T], patience: float) -> T:
    """Return the result of an action, repeated while HDFS is away.

    Raises
    ------
    RemoteError
        If it fails for good, or for longer than ``patience`` seconds.
    """
    wait = Wait(uri, patience)

    def attempt() -> T:
        try:
            result = action()
        except StoreError as exc:
            if exc.transient:
                wait.failed(exc)
            raise
        wait.succeeded()
        return result

    try:
        return retry(attempt, time.monotonic() + patience, longest=5.0)
    except StoreError as exc:
        wait.given_up()
        raise remote_error(uri, exc, patience if exc.transient else 0.0) from exc
