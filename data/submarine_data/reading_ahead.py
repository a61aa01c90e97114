"""Read ahead, bounded by bytes: pieces of a remote file, and decoded records.

Their background threads end when the reader is closed or no longer referenced.
"""

from __future__ import annotations

import io
import threading
import weakref
from bisect import bisect_right
from collections import OrderedDict, deque
from itertools import islice
from typing import (
    Any,
    BinaryIO,
    Callable,
    Generic,
    Iterable,
    Iterator,
    NamedTuple,
    Sequence,
    TypeVar,
)

from submarine_data.errors import DataError

#: Bytes of one request to a remote file: smaller ones are dominated by their latency.
PIECE = 4 << 20
#: Bytes of a remote file that are kept, read ahead included.
KEPT = 6 * PIECE
#: Pieces that are requested before they are needed.
_AHEAD = 2
#: Pieces of a plan of which a connection takes its next one: it does not run ahead of the other.
_NEAR = 16

T = TypeVar("T")


class Range(NamedTuple):
    """Bytes of a file: the first, and the one after the last."""

    start: int
    end: int


class ReadAheadFile(io.RawIOBase):
    """A file object that reads another one in pieces of 4 MiB, and the next pieces in advance.

    Two pieces ahead are requested while a file is read sequentially. After a jump, only the pieces
    that contain the requested bytes are. ``expect`` names other pieces and their order.

    Parameters
    ----------
    source
        Any readable and seekable file object. Only this object uses it from now on.
    size
        Its size in bytes.
    piece, kept
        Bytes of a request; bytes of all pieces in memory.
    again
        Function that opens the file once more, for a second connection.
    """

    def __init__(
        self,
        source: BinaryIO,
        size: int,
        piece: int = PIECE,
        kept: int = KEPT,
        again: Callable[[], BinaryIO] | None = None,
    ) -> None:
        super().__init__()
        self._position, self._size = 0, size
        self._order: _Sequential = _Sequential(size, piece)
        self._pieces = _Pieces(source, max(4 * piece, kept), again)
        self._last: Range | None = None
        #: The last error of the source with a sentence, for packages that lose it.
        self.failure: DataError | None = None
        self._end = weakref.finalize(self, self._pieces.stop)

    def expect(self, ranges: Sequence[Range], kept: int, beside: Iterable[Range] = ()) -> None:
        """Read these parts of the file in advance, in this order; each byte is used once.

        They replace those that were expected before; parts of both are not read again.

        Parameters
        ----------
        ranges
            The parts, without overlaps: each is one request. Other bytes can be read too.
        kept
            Bytes of parts in memory that were not used yet.
        beside
            Those of the parts that a second connection reads, where there may be one.
        """
        self._order, self._last = _Planned(self._size, ranges), None
        self._pieces.plan(ranges, kept, beside)

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
        while done < len(view) and (data := self._some(len(view) - done)):
            view[done : done + len(data)] = data
            done += len(data)
        return done

    def read(self, size: int | None = -1) -> bytes:
        """Return up to ``size`` bytes; see ``io.RawIOBase``, which would copy them twice."""
        if size is None or size < 0:
            size = max(0, self._size - self._position)
        parts: list[bytes] = []
        while size > 0 and (data := self._some(size)):
            parts.append(bytes(data))
            size -= len(data)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def close(self) -> None:
        """End the thread and close the source."""
        if not self.closed:
            self._end()
        super().close()

    def _some(self, most: int) -> memoryview:
        """Return the next bytes of the current piece, and move; none at the end of the file."""
        if self._position >= self._size:
            return memoryview(b"")
        piece = self._order.at(self._position)
        if piece != self._last:
            if wanted := self._order.wanted(piece):
                self._pieces.request(wanted)
            self._last = piece
        try:
            data = self._pieces.get(piece)
        except DataError as exc:
            self.failure = exc
            raise
        offset = self._position - piece.start
        found = memoryview(data)[offset : offset + most]
        self._position += len(found)
        if self._position == piece.end:
            self._pieces.used(piece)
        return found


class _Sequential:
    """The pieces of a file that is read in order: all of one size, two ahead."""

    def __init__(self, size: int, piece: int) -> None:
        self._size, self._piece = size, piece
        self._next = 0

    def at(self, position: int) -> Range:
        """Return the piece that contains a byte."""
        start = position - position % self._piece
        return Range(start, min(self._size, start + self._piece))

    def wanted(self, piece: Range) -> list[Range]:
        """Return what to read now that a piece is needed, instead of what was to be read before.

        Empty: that stays.
        """
        ahead = _AHEAD if piece.start == self._next else 0
        self._next = piece.end
        starts = range(piece.start, self._size, self._piece)[: 1 + ahead]
        return [self.at(start) for start in starts]


class _Planned(_Sequential):
    """The pieces of a file of which some parts are expected."""

    def __init__(self, size: int, ranges: Sequence[Range]) -> None:
        super().__init__(size, PIECE)
        self._sorted = sorted(ranges)

    def at(self, position: int) -> Range:
        """Return the piece that contains a byte: a planned one, or one between those."""
        number = bisect_right(self._sorted, Range(position, self._size))
        start, end = super().at(position)
        if number:
            before = self._sorted[number - 1]
            if position < before.end:
                return before
            start = max(start, before.end)
        if number < len(self._sorted):
            end = min(end, self._sorted[number].start)
        return Range(start, end)

    def wanted(self, piece: Range) -> list[Range]:
        """Return nothing: the plan is read."""
        return []


class _Pieces:
    """The pieces of a file that are in memory or requested, and the threads that read them.

    Each thread has its own connection. The second one begins when a plan has pieces for it.
    """

    def __init__(self, source: Any, kept: int, again: Callable[[], Any] | None) -> None:
        self._source, self._kept, self._again = source, kept, again
        self._changed = threading.Condition()
        #: Whether pieces stay until they are used, else the ones used last do.
        self._planned = False
        self._wanted: deque[Range] = deque()
        self._beside: frozenset[Range] = frozenset()
        self._urgent: Range | None = None
        self._read: OrderedDict[Range, bytearray | BaseException] = OrderedDict()
        self._bytes = 0
        #: What each thread reads now; None: the piece is not needed any more.
        self._reading: list[Range | None] = []
        self._stopped = False

    def plan(self, ranges: Sequence[Range], kept: int, beside: Iterable[Range]) -> None:
        """Read these pieces as far as there is memory for them."""
        with self._changed:
            self._planned, self._kept = True, kept
            wanted = set(ranges)
            for piece in [piece for piece in self._read if piece not in wanted]:
                self._remove(piece)
            self._reading = [piece if piece in wanted else None for piece in self._reading]
            self._beside = frozenset(beside if self._again else ())
            self._request(ranges)

    def request(self, wanted: Sequence[Range]) -> None:
        """Read these pieces in this order; forget other requests."""
        with self._changed:
            self._request(wanted)

    def get(self, piece: Range) -> bytearray:
        """Return a piece when it is there; one that was not requested is read next."""
        with self._changed:
            while piece not in self._read:
                self._urgent = piece
                if piece not in self._reading and piece not in self._wanted:
                    self._wanted.appendleft(piece)
                self._wake()
                self._changed.wait()
            self._urgent = None
            found = self._read[piece]
            if isinstance(found, BaseException):
                del self._read[piece]  # The next read tries again.
                raise found
            self._read.move_to_end(piece)
            return found

    def used(self, piece: Range) -> None:
        """Free the memory of a piece of the plan."""
        with self._changed:
            if self._planned:
                self._remove(piece)
                self._changed.notify_all()

    def stop(self) -> None:
        """End the threads after their current requests, and close the sources."""
        with self._changed:
            self._stopped = True
            self._read.clear()
            self._changed.notify_all()
            if not self._reading:
                self._source.close()

    def _request(self, wanted: Sequence[Range]) -> None:
        self._wanted = deque(
            one for one in wanted if one not in self._read and one not in self._reading
        )
        self._wake()

    def _wake(self) -> None:
        for number in range(len(self._reading), 2 if self._beside else 1):
            self._reading.append(None)
            threading.Thread(
                target=self._run, args=(number,), name="submarine-read-ahead", daemon=True
            ).start()
        self._changed.notify_all()

    def _remove(self, piece: Range) -> None:
        data = self._read.pop(piece, b"")
        if not isinstance(data, BaseException):
            self._bytes -= len(data)

    def _thread_of(self, piece: Range) -> int:
        return int(piece in self._beside)

    def _fits(self, piece: Range) -> bool:
        return self._bytes + piece.end - piece.start <= self._kept

    def _next(self, thread: int) -> Range | None:
        """Return the piece that a thread reads now; None: there is none, or no memory for it."""
        near = islice(self._wanted, _NEAR if self._beside else 1)
        piece = next((one for one in near if self._thread_of(one) == thread), None)
        if piece is not None and not self._planned:
            while self._read and not self._fits(piece):
                self._remove(next(iter(self._read)))
        elif self._bytes and (piece is None or not self._fits(piece)):
            # The reader may wait for another one.
            piece = self._urgent
            if piece is None or piece not in self._wanted or self._thread_of(piece) != thread:
                return None
        if piece is not None:
            self._wanted.remove(piece)
        return piece

    def _run(self, thread: int) -> None:
        source = None if thread else self._source
        while True:
            with self._changed:
                while not self._stopped:
                    piece = self._reading[thread] = self._next(thread)
                    if piece is not None:
                        break
                    self._changed.wait()
                else:
                    break
            try:
                if source is None and self._again is not None:
                    source = self._again()
                data: bytearray | BaseException = self._fetched(source, piece)
            except BaseException as exc:
                data = exc  # It is raised where the piece is read.
            with self._changed:
                # A plan that was made meanwhile does not need it.
                needed = self._reading[thread] == piece and not self._stopped
                self._reading[thread] = None
                if needed:
                    self._read[piece] = data
                    self._bytes += 0 if isinstance(data, BaseException) else len(data)
                self._changed.notify_all()
            del data
        if source is not None:
            source.close()

    @staticmethod
    def _fetched(source: Any, piece: Range) -> bytearray:
        source.seek(piece.start)
        data = bytearray(piece.end - piece.start)
        done = 0
        with memoryview(data) as view:
            while done < len(data):
                count = source.readinto(view[done:])
                if not count:
                    break
                done += count
        del data[done:]
        return data


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
