"""Write the records of an input with mode ``stream`` to a named pipe.

The agent of a task runs this module with the program's Python, ``python -m submarine_data.feeder
DIRECTORY``, in a process beside the program. The directory contains the order (``stream.json``) and
the pipe (``stream``), and receives the positions (``history.json``). The exit status is 0 if all
records were written or the reader has closed the pipe; otherwise the last line of stderr says what
is wrong. The module also runs without pyarrow, except for its formats and for Arrow frames.
"""

from __future__ import annotations

import array
import base64
import fcntl
import json
import os
import select
import sys
import termios
import time
from collections import deque
from typing import Any, Callable, Iterator, Mapping, NamedTuple, Sequence

from submarine_data.batches import Batch
from submarine_data.dataset import Dataset
from submarine_data.errors import DataError, require
from submarine_data.file_systems import FileEntry, file_system_of
from submarine_data.formats import raw_lines
from submarine_data.ranks import Place
from submarine_data.sources import sources_of
from submarine_data.streams import Position
from submarine_runtime.files import replace_file
from submarine_runtime.translation import _

#: Names in the directory.
ORDER, PIPE, HISTORY = "stream.json", "stream", "history.json"
#: Capacity of the pipe in bytes: the most that an unprivileged process gets.
CAPACITY = 1 << 20
#: Bytes of a write.
BLOCK = 256 << 10
#: Bytes of lines that a position is exact to.
_LINES = 64 << 10
#: Bytes that the program may have read without having processed them, unless the order says more.
AHEAD = 1 << 20
#: Seconds between two entries of the history; entries from which older ones are thinned.
_INTERVAL = 0.25
_ENTRIES, _THINNED = 240, 160
#: Seconds between two looks whether the program has read the end of the data.
_END_POLL = 0.05
_SET_CAPACITY = 1031  # F_SETPIPE_SZ, which Python 3.8 does not name.


class Options(NamedTuple):
    """The words of ``:stream=...``; ``jobs`` checks them before the submission."""

    epochs: int = 1
    shuffle: int = 0
    seed: int = 0
    frame: str = "lines"
    batch: int = 0
    ahead: int = AHEAD
    format: str = ""

    @classmethod
    def of(cls, words: Sequence[str]) -> Options:
        """Return the options of words such as ``epochs=3``; others are ignored."""
        given = dict(word.partition("=")[::2] for word in words)
        found: dict[str, Any] = {
            name: type(default)(given[name])
            for name, default in cls._field_defaults.items()
            if name in given
        }
        return cls(**found)


class Mark(NamedTuple):
    """A place in the data: epoch, position in it, and the number of records before it."""

    epoch: int
    position: Position
    records: int


class Piece(NamedTuple):
    """Bytes to write, and the place after them."""

    data: Any
    after: Mark


class History:
    """The places that the program had certainly read and processed at some times.

    An entry is ``[seconds since 1970, epoch, position, records, records read]``: the records before
    the place, and those that the program had taken from the pipe, which are more.

    Parameters
    ----------
    path
        The file.
    place
        Rank and number of the tasks that share the data.
    """

    def __init__(self, path: str, place: Place) -> None:
        self._path, self._place = path, place
        self._saved = 0.0
        self.entries: list[list[Any]] = []
        self._other = False
        try:
            with open(path, encoding="utf-8") as file:
                known = json.load(file)
            self.entries = list(known["entries"])
            self._other = [known["rank"], known["world"]] != list(place)
        except FileNotFoundError:
            pass

    def start(self) -> Mark:
        """Return the place after the last entry; after a change of the tasks, its epoch's start."""
        if not self.entries:
            return Mark(0, Position(), 0)
        _time, epoch, position, records, _read = self.entries[-1]
        return Mark(epoch, Position() if self._other else Position(*position), records)

    def add(self, mark: Mark, read: int, *, now: bool = False) -> None:
        """Add an entry, at most four times a second unless ``now``."""
        moment = time.time()
        if not now and 0 <= moment - self._saved < _INTERVAL:
            return
        self._saved = moment
        entry = [mark.epoch, list(mark.position), mark.records, read]
        if self.entries and self.entries[-1][1:] == entry and not now:
            return
        self.entries.append([round(moment, 3), *entry])
        if len(self.entries) > _ENTRIES:
            # The older the entries, the larger the times between them; the first one stays.
            del self.entries[1:_THINNED:2]
        rank, world = self._place
        content = {"rank": rank, "world": world, "entries": self.entries}
        replace_file(self._path, json.dumps(content).encode())


class Pipe:
    """The writing end of the pipe, and the place that the program has reached.

    Parameters
    ----------
    path
        The named pipe; the constructor waits for its reader.
    ahead
        Bytes that the program reads before it processes them.
    """

    def __init__(self, path: str, history: History, start: Mark, ahead: int) -> None:
        self._descriptor = os.open(path, os.O_WRONLY)
        try:
            fcntl.fcntl(self._descriptor, _SET_CAPACITY, CAPACITY)
        except OSError:
            pass  # The user's pipes have reached a limit of the system: 64 KiB remain.
        # A blocked write would hide what the program reads in the meantime.
        os.set_blocking(self._descriptor, False)
        self._history, self._ahead = history, ahead
        self._poll = select.poll()
        self._poll.register(self._descriptor, select.POLLOUT)
        self._written = 0
        self._read, self._processed = start.records, start
        self._unread: deque[tuple[int, int]] = deque()
        self._unprocessed: deque[tuple[int, Mark]] = deque()
        history.add(start, self._read, now=True)

    def write(self, piece: Piece) -> None:
        """Write a piece; raise BrokenPipeError if the reader has closed the pipe."""
        view = memoryview(piece.data).cast("B")
        while view:
            try:
                count = os.write(self._descriptor, view[:BLOCK])
            except BlockingIOError:
                count = 0
            self._written += count
            view = view[count:]
            self._note()
            while not count and not self._poll.poll(_INTERVAL * 1000):
                self._note()  # The program computes, or reads no more.
        self._unread.append((self._written, piece.after.records))
        self._unprocessed.append((self._written, piece.after))

    def close(self) -> None:
        """Wait until the program has read what is in the pipe, or has closed it; then close it."""
        self._poll.modify(self._descriptor, 0)  # Only POLLERR: there is no reader.
        while self._waiting() and not self._poll.poll(_END_POLL * 1000):
            self._note()
        self._note(now=True)
        os.close(self._descriptor)

    def _waiting(self) -> int:
        """Return the number of bytes in the pipe."""
        count = array.array("i", [0])
        fcntl.ioctl(self._descriptor, termios.FIONREAD, count)
        return count[0]

    def _note(self, now: bool = False) -> None:
        taken = self._written - self._waiting()
        while self._unread and self._unread[0][0] <= taken:
            self._read = self._unread.popleft()[1]
        while self._unprocessed and self._unprocessed[0][0] <= taken - self._ahead:
            self._processed = self._unprocessed.popleft()[1]
        self._history.add(self._processed, self._read, now=now)


def feed(directory: str) -> None:
    """Write all records to the pipe.

    Raises
    ------
    DataError
        If a file is missing or damaged.
    BrokenPipeError
        If the reader has closed the pipe.
    """
    with open(os.path.join(directory, ORDER), encoding="utf-8") as file:
        order = json.load(file)
    options = Options.of(order["options"])
    place = Place(order["rank"], order["world"])
    dataset = Dataset(
        sources_of(_entries(order["files"])),
        format=options.format or None,
        columns=None,
        conditions=(),
        batch_size=options.batch or (8192 if options.frame == "arrow" else 1024),
        place=place,
        shuffle=options.shuffle,
        seed=options.seed,
        prefetch=32 << 20,
        options={},
    )
    history = History(os.path.join(directory, HISTORY), place)
    start = history.start()
    frames: Iterator[Piece] = _frames(dataset, options, start)
    pipe = Pipe(os.path.join(directory, PIPE), history, start, options.ahead)
    try:
        for piece in frames:
            pipe.write(piece)
    finally:
        pipe.close()


def _entries(rows: Sequence[Sequence[Any]]) -> list[FileEntry]:
    """Return the files of an order: ``[URI, bytes]``, 0 where the size is not known."""
    shown = [row for row in rows if not row[0].rpartition("/")[2].startswith(("_", "."))]
    found = []
    for uri, size in shown or rows:
        found.extend([FileEntry(uri, size, 0.0)] if size else file_system_of(uri).find(uri))
    return found


def _frames(dataset: Dataset, options: Options, start: Mark) -> Iterator[Piece]:
    """Return the bytes of all epochs from a place on."""
    if options.frame == "arrow":
        return _arrow_frames(dataset, options, start)
    if dataset.format == "text" and not options.shuffle:
        return _text_lines(dataset, options, start)
    encode = _lines_of_text if dataset.format == "text" else _json_lines
    return _encoded(dataset, options, start, encode)


def _batches(dataset: Dataset, options: Options, start: Mark) -> Iterator[tuple[Batch, Mark]]:
    """Yield the batches of all epochs from a place on, and the place after each."""
    records = start.records
    for epoch in range(start.epoch, options.epochs):
        position = start.position if epoch == start.epoch else Position()
        for item in dataset.items(epoch, position, 0, 1):
            records += len(item.batch)
            yield item.batch, Mark(epoch, item.after, records)


def _encoded(
    dataset: Dataset, options: Options, start: Mark, encode: Callable[[Batch], bytes]
) -> Iterator[Piece]:
    for batch, after in _batches(dataset, options, start):
        yield Piece(encode(batch), after)


def _lines_of_text(batch: Batch) -> bytes:
    return "".join(f"{line}\n" for line in batch.column("text")).encode()


def _json_lines(batch: Batch) -> bytes:
    encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_plain).encode
    return "".join(f"{encode(record)}\n" for record in batch.records()).encode()


def _plain(value: Any) -> Any:
    """Return a value that JSON has: base64 for bytes, lists for arrays, else its text."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(value).decode()
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _text_lines(dataset: Dataset, options: Options, start: Mark) -> Iterator[Piece]:
    """Yield the lines of text files as they are, without decoding them."""
    records = start.records
    for epoch in range(start.epoch, options.epochs):
        first = start.position if epoch == start.epoch else Position()
        splits = dataset.splits(epoch)
        for number in range(first.split, len(splits)):
            done = 0
            skip = first.record if number == first.split else 0
            for view, count in raw_lines(splits[number], _LINES):
                block: Any = view
                if skip:
                    left_out = min(skip, count)
                    block = bytes(view).split(b"\n", left_out)[left_out]
                    skip -= left_out
                    records -= left_out
                done += count
                records += count
                if block:
                    yield Piece(block, Mark(epoch, Position(number, done), records))


class _Sink:
    """A file object that keeps what is written until it is taken."""

    closed = False

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def write(self, data: Any) -> int:
        self._parts.append(bytes(data))
        return len(data)

    def flush(self) -> None:
        pass

    def writable(self) -> bool:
        return True

    def take(self) -> bytes:
        parts, self._parts = self._parts, []
        return b"".join(parts)


def _arrow_frames(dataset: Dataset, options: Options, start: Mark) -> Iterator[Piece]:
    """Yield one Arrow IPC stream of all epochs; its schema is that of the first records."""
    arrow = require("pyarrow", _("An Arrow stream"))
    ipc = require("pyarrow.ipc", _("An Arrow stream"))
    sample = dataset.sample()
    schema = arrow.schema([]) if sample is None else sample.to_arrow().schema
    sink, after = _Sink(), start
    writer = ipc.new_stream(arrow.PythonFile(sink, mode="w"), schema)
    for batch, after in _batches(dataset, options, start):
        writer.write_batch(_with_schema(arrow, batch.to_arrow(), schema))
        yield Piece(sink.take(), after)
    writer.close()
    rest = sink.take()
    if rest:
        yield Piece(rest, after)


def _with_schema(arrow: Any, batch: Any, schema: Any) -> Any:
    """Return a batch with the types of the stream."""
    if batch.schema.equals(schema):
        return batch
    try:
        table = arrow.Table.from_batches([batch]).select(schema.names).cast(schema)
        (found,) = table.combine_chunks().to_batches()
    except (arrow.ArrowException, KeyError, ValueError) as exc:
        raise DataError(
            _(
                "A batch has the columns {columns}, which are not those of the stream: {error}."
            ).format(
                columns=", ".join(f"{field.name} {field.type}" for field in batch.schema),
                error=str(exc).partition("\n")[0].rstrip("."),
            )
        ) from exc
    return found


def main(arguments: Sequence[str]) -> int:
    """Run the process; return its exit status."""
    directory = arguments[0]
    try:
        feed(directory)
    except BrokenPipeError:
        pass  # The program does not want more.
    except DataError as exc:
        print(str(exc).replace("\n", " "), file=sys.stderr, flush=True)
        return 1
    except MemoryError:
        print(_("The reader has no memory left."), file=sys.stderr, flush=True)
        return 1
    except Exception as exc:
        text = f"{type(exc).__name__}: {exc}".replace("\n", " ")
        print(text, file=sys.stderr, flush=True)
        return 1
    # A second open would wait for a writer that never comes.
    os.unlink(os.path.join(directory, PIPE))
    return 0


if __name__ == "__main__":
    status = main(sys.argv[1:])
    sys.stderr.flush()
    os._exit(status)  # Without waiting for threads that read ahead.
