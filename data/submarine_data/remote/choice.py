"""Choose the file system of a URI."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any, BinaryIO

from submarine_data.file_systems import FileSystem
from submarine_data.remote.configuration import HDFS_SCHEMES, client_configuration, split_uri
from submarine_data.remote.errors import RemoteError
from submarine_data.remote.fsspec_files import FsspecFileSystem
from submarine_data.remote.hdfs_native import HdfsNativeFileSystem, usable
from submarine_data.remote.webhdfs import WebHdfsFileSystem
from submarine_data.remote.writer import AtomicWriter
from submarine_runtime.translation import _

#: Values of ``client``.
NATIVE, WEB = "hdfs-native", "webhdfs"


def remote_file_system(uri: str, client: str | None = None) -> FileSystem:
    """Return the file system that reads a URI.

    ``hdfs://`` and ``viewfs://`` are read by hdfs-native where it is installed and can sign in,
    else by WebHDFS; ``webhdfs://`` and ``swebhdfs://`` by WebHDFS; any other scheme by fsspec.

    Parameters
    ----------
    uri
        With a scheme; only scheme and host count.
    client
        ``hdfs-native`` or ``webhdfs``: the client of HDFS; None: as above.

    Raises
    ------
    RemoteError
        If the URI has no scheme, or the configuration of this process cannot be read.
    """
    scheme = split_uri(uri)[0]
    if not scheme:
        raise RemoteError(_("{uri} has no scheme such as hdfs://.").format(uri=uri))
    if scheme not in HDFS_SCHEMES:
        return FsspecFileSystem()
    configuration = client_configuration()
    native = scheme in ("hdfs", "viewfs") and usable(configuration)
    if client == NATIVE or (client is None and native):
        return HdfsNativeFileSystem(configuration)
    return WebHdfsFileSystem(configuration)


def open_file(uri: str, mode: str = "rb") -> BinaryIO:
    """Open a file of HDFS or another store, with the standard library where that suffices.

    Parameters
    ----------
    uri
        With a scheme, such as ``hdfs:///data/a.csv``.
    mode
        ``rb``, or for HDFS ``wb``. A written file appears with its whole content when it is closed.

    Raises
    ------
    DataError
        If the file cannot be opened.
    """
    if mode == "rb":
        return remote_file_system(uri).open(uri)
    if mode != "wb" or split_uri(uri)[0] not in HDFS_SCHEMES:
        raise RemoteError(
            _(
                "{uri} cannot be opened with mode {mode}: rb reads any file, wb writes to HDFS."
            ).format(uri=uri, mode=mode)
        )
    return AtomicWriter(WebHdfsFileSystem(), uri).file()


def filesystem() -> Any:
    """Return an fsspec file system for HDFS by WebHDFS, with the credentials of this process.

    pyarrow, pandas and others read and write ``hdfs://`` with it, without Java.

    Raises
    ------
    RemoteError
        If fsspec is missing.
    """
    if importlib.util.find_spec("fsspec") is None:
        raise RemoteError(
            _(
                "The Python of this process lacks fsspec, which pyarrow and pandas need for "
                "hdfs://: install it, or read files with submarine_data.open_file."
            )
        )
    module = importlib.import_module("submarine_data.remote.fsspec_hdfs")
    return module.HdfsFileSystem()
