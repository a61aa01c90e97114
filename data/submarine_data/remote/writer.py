"""Write a file of HDFS: collected on this machine, sent at the end, and published by one rename.

Readers see the file with its whole content or not at all, and an outage of HDFS during the transfer
is survived, because the content is sent again. The cost is space in the directory for temporary
files (``TMPDIR``) for files of more than 32 MB.
"""

from __future__ import annotations

import io
import tempfile
from types import TracebackType
from typing import Any, BinaryIO, Iterator, cast

from submarine_data.remote.errors import RemoteError
from submarine_data.remote.range_reader import PATIENCE
from submarine_data.remote.webhdfs import WebHdfsFileSystem, patiently
from submarine_runtime.translation import _

#: Content up to this size stays in memory.
MEMORY_BYTES = 32 << 20
_BLOCK_BYTES = 1 << 20


class AtomicWriter(io.RawIOBase):
    """A file of HDFS, for writing; an exception in its ``with`` block writes nothing.

    Parameters
    ----------
    system
        The file system that locates ``uri``.
    patience
        Seconds that ``close`` waits for HDFS.
    """

    def __init__(self, system: WebHdfsFileSystem, uri: str, patience: float = PATIENCE) -> None:
        super().__init__()
        self.name = uri
        self._patience = patience
        self._place, self._store = system.located(uri)
        found = patiently(uri, lambda: self._store.stat(self._place.path), patience)
        if found is not None and found.is_directory:
            raise RemoteError(_("{uri} is a directory.").format(uri=uri))
        self._content: Any = tempfile.SpooledTemporaryFile(MEMORY_BYTES)  # noqa: SIM115
        self._length = 0

    def file(self) -> BinaryIO:
        """Return this object as a file."""
        return cast("BinaryIO", self)

    def writable(self) -> bool:
        """See ``io.IOBase``."""
        return True

    def tell(self) -> int:
        """See ``io.IOBase``."""
        return self._length

    def write(self, data: Any, /) -> int:
        """See ``io.RawIOBase``; all bytes are written."""
        if self.closed:
            raise ValueError("I/O operation on closed file")
        view = memoryview(data).cast("B")
        self._content.write(view)
        self._length += len(view)
        return len(view)

    def close(self) -> None:
        """Send the content and publish the file.

        Raises
        ------
        RemoteError
            If HDFS refuses the file, or does not answer within the patience; there is no file then.
        """
        if self.closed:
            return
        try:
            patiently(self.name, self._send, self._patience)
        finally:
            self.discard()

    def _send(self) -> None:
        self._store.put(self._place.path, self._blocks(), self._length)

    def _blocks(self) -> Iterator[bytes]:
        self._content.seek(0)
        while block := self._content.read(_BLOCK_BYTES):
            yield block

    def discard(self) -> None:
        """Close the file without writing it."""
        if not self.closed:
            self._content.close()
            super().close()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is not None:
            self.discard()
        self.close()

    def __del__(self) -> None:
        # An abandoned file is not published: it may be incomplete.
        if hasattr(self, "_content"):
            self.discard()
