"""Read ahead, bounded by bytes: pieces of a remote file, and decoded records.

Both use one background thread, which ends when its reader is closed or no longer referenced.
"""

from __future__ import annotations

import io
import threading
import weakref
from collections import OrderedDict, deque
from typing import Any, BinaryIO, Callable, Generic, Iterator, TypeVar

from submarine_data.errors import DataError

#: Bytes of one request to a remote file: smaller ones are dominated by their latency.
PIECE = 4 << 20
#: Bytes of a remote file that are kept, read ahead included.
KEPT = 6 * PIECE

T = TypeVar("T")


class ReadAheadFile(io.RawIOBase):
    """A file object that reads another one in pieces of 4 MiB, and the next pieces in advance.

    Two pieces ahead are requested while a file is read sequentially. After a jump, only the pieces
    that contain the requested bytes are.

    Parameters
    ----------
    source
        Any readable and seekable file object. Only this object uses it from now on.
    size
        Its size in bytes.
    piece, kept
        Bytes of a request; bytes of all pieces in memory.
    """

    def __init__(self, source: BinaryIO, size: int, piece: int = PIECE, kept: int = KEPT) -> None:
        super().__init__()
        self._position, self._size, self._piece = 0, size, piece
        self._pieces = _Pieces(source, size, piece, max(4, kept // piece))
        self._last = -1
        #: The last error of the source with a sentence, for packages that lose it.
        self.failure: DataError | None = None
        self._end = weakref.finalize(self, self._pieces.stop)

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the position in bytes."""
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Change the position by ``offset`` bytes from ``whence``; nothing is read."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = max(0, start + offset)
        return self._position

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer as far as the file goes; return the number of bytes.

        Raises
        ------
        OSError
            What the source raised; the next read tries again.
        """
        view = memoryview(buffer).cast("B")
        done = 0
        while done < len(view) and self._position < self._size:
            number, offset = divmod(self._position, self._piece)
            if number != self._last:
                ahead = 2 if number == self._last + 1 else 0
                self._pieces.request(number, ahead)
                self._last = number
            try:
                data = self._pieces.get(number)
            except DataError as exc:
                self.failure = exc
                raise
            count = min(len(view) - done, len(data) - offset)
            if count <= 0:
                break  # The file became shorter.
            view[done : done + count] = memoryview(data)[offset : offset + count]
            done += count
            self._position += count
        return done

    def close(self) -> None:
        """End the thread and close the source."""
        if not self.closed:
            self._end()
        super().close()


class _Pieces:
    """The pieces of a file that are in memory or requested, and the thread that reads them."""

    def __init__(self, source: BinaryIO, size: int, piece: int, most: int) -> None:
        self._source, self._size, self._piece, self._most = source, size, piece, most
        self._changed = threading.Condition()
        self._wanted: deque[int] = deque()
        self._read: OrderedDict[int, bytes | BaseException] = OrderedDict()
        self._reading = -1
        self._stopped = False
        self._thread: threading.Thread | None = None

    def request(self, number: int, ahead: int) -> None:
        """Read a piece first, then those after it; forget other requests."""
        last = (self._size - 1) // self._piece
        with self._changed:
            wanted = range(number, min(number + ahead, last) + 1)
            self._wanted = deque(
                one for one in wanted if one not in self._read and one != self._reading
            )
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="submarine-read-ahead", daemon=True
                )
                self._thread.start()
            self._changed.notify_all()

    def get(self, number: int) -> bytes:
        """Return a piece that was requested, when it is there."""
        with self._changed:
            while number not in self._read:
                if number != self._reading and number not in self._wanted:
                    self._wanted.appendleft(number)
                    self._changed.notify_all()
                self._changed.wait()
            found = self._read[number]
            if isinstance(found, BaseException):
                del self._read[number]  # The next read tries again.
                raise found
            self._read.move_to_end(number)
            return found

    def stop(self) -> None:
        """End the thread after its current request, and close the source."""
        with self._changed:
            self._stopped = True
            self._read.clear()
            self._changed.notify_all()
            if self._thread is None:
                self._source.close()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._wanted and not self._stopped:
                    self._changed.wait()
                if self._stopped:
                    break
                number = self._reading = self._wanted.popleft()
                while len(self._read) >= self._most:
                    self._read.popitem(last=False)
            data = self._request(number)
            with self._changed:
                self._reading = -1
                if not self._stopped:
                    self._read[number] = data
                self._changed.notify_all()
        self._source.close()

    def _request(self, number: int) -> bytes | BaseException:
        try:
            start = number * self._piece
            self._source.seek(start)
            left = min(self._piece, self._size - start)
            parts = []
            while left > 0:
                data = self._source.read(left)
                if not data:
                    break
                parts.append(data)
                left -= len(data)
            return parts[0] if len(parts) == 1 else b"".join(parts)
        except BaseException as exc:
            return exc  # It is raised where the piece is read.


class Prefetch(Generic[T]):
    """Iterate in a background thread; the items that wait are bounded by their bytes.

    Parameters
    ----------
    items
        A generator. It runs, and is closed, in the thread.
    size
        Function that returns the bytes of an item.
    most
        Bytes of items that wait. One item always may.
    """

    def __init__(self, items: Iterator[T], size: Callable[[T], int], most: int) -> None:
        self._queue: _Queue[T] = _Queue(size, most)
        self._end = weakref.finalize(self, self._queue.stop)
        threading.Thread(
            target=_produce, args=(items, self._queue), name="submarine-prefetch", daemon=True
        ).start()

    def __iter__(self) -> Prefetch[T]:
        """Return itself."""
        return self

    def __next__(self) -> T:
        """Return the next item, or raise what the generator raised."""
        return self._queue.get()

    def close(self) -> None:
        """End the thread after its current item.

        This does not wait: an abandoned iterator is closed by the garbage collector, also at the
        end of the interpreter, where threads no longer run.
        """
        self._end()


class _Queue(Generic[T]):
    def __init__(self, size: Callable[[T], int], most: int) -> None:
        self._size, self._most = size, most
        self._changed = threading.Condition()
        #: The items that wait, with their sizes.
        self._items: deque[tuple[T, int]] = deque()
        self._bytes = 0
        self._stopped = False
        self._error: BaseException | None = None

    def put(self, item: T) -> bool:
        """Add an item when there is room; return False once the reader has stopped."""
        size = self._size(item)
        with self._changed:
            while self._items and self._bytes + size > self._most and not self._stopped:
                self._changed.wait()
            if not self._stopped:
                self._items.append((item, size))
                self._bytes += size
                self._changed.notify_all()
            return not self._stopped

    def finish(self, error: BaseException) -> None:
        """End the iteration with an exception, after the items that wait."""
        with self._changed:
            self._error = error
            self._changed.notify_all()

    def get(self) -> T:
        with self._changed:
            while not self._items and self._error is None and not self._stopped:
                self._changed.wait()
            if self._items:
                item, size = self._items.popleft()
                self._bytes -= size
                self._changed.notify_all()
                return item
            error, self._error = self._error, StopIteration()
            raise error or StopIteration()

    def stop(self) -> None:
        with self._changed:
            self._stopped = True
            self._items.clear()
            self._bytes = 0
            self._changed.notify_all()


def _produce(items: Iterator[T], queue: _Queue[T]) -> None:
    end: BaseException = StopIteration()
    try:
        for item in items:
            if not queue.put(item):
                break
    except BaseException as exc:
        end = exc  # It is raised where the items are read.
    finally:
        close = getattr(items, "close", None)
        if close is not None:
            close()
        queue.finish(end)
