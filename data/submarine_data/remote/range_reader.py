"""A remote file as a plain file object that reads ranges and outlasts an outage.

The ranges grow while the file is read in order, so that a request is at least 4 MB then. A range is
received as it is read, so the memory of a file is its buffer.
"""

from __future__ import annotations

import io
import time
from typing import Any, BinaryIO, Callable, ContextManager, Protocol, cast

from submarine_data.remote.errors import MissingFileError, RefusedAccessError, RemoteError
from submarine_data.remote.waiting import Wait
from submarine_runtime.backoff import Backoff
from submarine_runtime.storage import NotFoundError, StoreError
from submarine_runtime.translation import _

#: Buffer of the file object.
BUFFER_BYTES = 1 << 18
#: Sizes of the requests while a file is read in order: the first, the largest, and the factor from
#: one to the next. Another request costs a DataNode 10 to 25 ms.
_FIRST, _LARGEST, _GROWTH = 4 << 20, 64 << 20, 16
#: A gap up to this size is read and dropped, because another request takes longer.
_GAP = 1 << 20
#: Seconds that a read waits for a file system without any byte.
PATIENCE = 180.0
_LONGEST_PAUSE = 5.0
#: Bodies without a byte until the file counts as shortened.
_MAX_EMPTY = 3


class Body(Protocol):
    """Bytes of a range, as they arrive."""

    def readinto(self, buffer: memoryview, /) -> int:
        """Return the number of bytes read, 0 at the end; raise StoreError."""


#: Open a range of a file: offset and length in bytes.
OpenRange = Callable[[int, int], ContextManager[Body]]


class RangeReader(io.RawIOBase):
    """A remote file, for reading.

    Parameters
    ----------
    uri
        Name of the file in messages.
    size
        Size of the file in bytes.
    open_range
        Opens a range. It raises StoreError, which is transient if another attempt may succeed.
    patience
        Seconds without a byte after which a transient error is raised.
    block
        Size of the file's blocks in bytes: no request crosses one, so that each is served where
        its block is; 0: unknown.
    """

    def __init__(
        self,
        uri: str,
        size: int,
        open_range: OpenRange,
        *,
        patience: float = PATIENCE,
        block: int = 0,
    ) -> None:
        super().__init__()
        self.name = uri
        self.size = size
        self._open_range, self._patience, self._block = open_range, patience, block
        self._position = 0
        self._context: ContextManager[Body] | None = None
        self._body: Body | None = None
        #: Position and end of the open range.
        self._at = self._end = 0
        self._last_length = 0

    def readable(self) -> bool:
        """See ``io.IOBase``."""
        return True

    def seekable(self) -> bool:
        """See ``io.IOBase``."""
        return True

    def tell(self) -> int:
        """See ``io.IOBase``."""
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """See ``io.IOBase``."""
        self._check_open()
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self.size}.get(whence)
        if base is None:
            raise ValueError(f"invalid whence ({whence})")
        if base + offset < 0:
            raise ValueError(f"negative seek position {base + offset}")
        self._position = base + offset
        return self._position

    def readinto(self, buffer: Any, /) -> int:
        """See ``io.RawIOBase``.

        Raises
        ------
        RemoteError
            If the file cannot be read, at once or within the patience.
        """
        self._check_open()
        view = memoryview(buffer).cast("B")
        view = view[: max(0, min(len(view), self.size - self._position))]
        if not view:
            return 0
        count = self._read_patiently(view)
        self._position += count
        return count

    def close(self) -> None:
        """See ``io.IOBase``."""
        self._drop()
        super().close()

    def _check_open(self) -> None:
        if self.closed:
            raise ValueError("I/O operation on closed file")

    def _read_patiently(self, view: memoryview) -> int:
        """Return the number of bytes read; continue at the same byte after a broken connection."""
        backoff, end, empty = Backoff(0.1, _LONGEST_PAUSE), time.monotonic() + self._patience, 0
        wait = Wait(self.name, self._patience)
        while True:
            try:
                count = self._read_some(view)
            except StoreError as exc:
                self._drop()
                pause = backoff.pause()
                if not exc.transient or time.monotonic() + pause > end:
                    wait.given_up()
                    raise self._failure(exc) from exc
                wait.failed(exc)
                time.sleep(pause)
                continue
            wait.succeeded()
            if count:
                return count
            empty += 1
            self._drop()
            if empty == _MAX_EMPTY:
                raise RemoteError(
                    _("{uri} has become shorter than {size} bytes while it was read.").format(
                        uri=self.name, size=self.size
                    )
                )

    def _failure(self, exc: StoreError) -> RemoteError:
        return remote_error(self.name, exc, self._patience if exc.transient else 0.0)

    def _read_some(self, view: memoryview) -> int:
        self._move(len(view))
        if self._body is None:
            raise StoreError("no range is open")
        wanted = min(len(view), self._end - self._at)
        count = self._body.readinto(view[:wanted])
        self._at += count
        return count

    def _move(self, wanted: int) -> None:
        """Make the position of the open range that of the file; open one if necessary."""
        gap = self._position - self._at
        if self._body is not None and 0 < gap <= _GAP and self._position < self._end:
            dropped = memoryview(bytearray(gap))
            while gap and (count := self._body.readinto(dropped[:gap])):
                self._at, gap = self._at + count, gap - count
        if self._body is not None and gap == 0 and self._at < self._end:
            return
        continues = gap == 0 and self._at == self._end > 0
        self._drop()
        if continues:
            length = max(wanted, _FIRST, min(_LARGEST, self._last_length * _GROWTH))
        else:
            # The buffer's own read follows a read of whole buffers.
            length = wanted + BUFFER_BYTES
        begin = self._position
        length = min(length, self.size - begin)
        if self._block:
            length = min(length, self._block - begin % self._block)
        context = self._open_range(begin, length)
        self._body = context.__enter__()
        self._context = context
        self._at, self._end, self._last_length = begin, begin + length, length

    def _drop(self) -> None:
        context, self._context, self._body = self._context, None, None
        if context is not None:
            try:
                context.__exit__(None, None, None)
            except StoreError:
                pass  # The range is given up.


def buffered(reader: RangeReader) -> BinaryIO:
    """Return the file object for programs."""
    return cast("BinaryIO", io.BufferedReader(reader, BUFFER_BYTES))


def remote_error(uri: str, exc: StoreError, waited: float = 0.0) -> RemoteError:
    """Return the error of a file for a program.

    Parameters
    ----------
    waited
        Seconds of attempts before; 0: there was one.
    """
    if isinstance(exc, NotFoundError):
        return MissingFileError(_("There is no file {uri}.").format(uri=uri))
    kind = RefusedAccessError if "ermission denied" in str(exc) else RemoteError
    error = str(exc).rstrip(".")
    if waited:
        return kind(
            _("{uri} could not be accessed for {seconds:.0f} s: {error}.").format(
                uri=uri, seconds=waited, error=error
            )
        )
    return kind(_("{uri} cannot be accessed: {error}.").format(uri=uri, error=error))
