"""Follow the logs of a job in the calling thread: each byte once and in order until the job ends.

The bytes come from a ``LogSource`` in a background thread. If the file system or the cluster does
not answer, reading is retried, and a note in the log states the period. After the restart of a
task, a note precedes the new attempt.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from submarine_jobs.access import LogChunk
from submarine_jobs.concurrency import background_loop, in_thread
from submarine_jobs.errors import ClusterError, NoAccessError
from submarine_jobs.logs.delivery import LIVE_PIECE, LogDelivery
from submarine_jobs.logs.merging import merged_parts
from submarine_jobs.logs.reader import LogReader
from submarine_jobs.logs.source import LogSource
from submarine_runtime.protocol import LogCursor, LogKey, attempt_order
from submarine_runtime.protocol.layout import FIRST_ATTEMPT, STREAMS
from submarine_runtime.translation import _

if TYPE_CHECKING:
    from submarine_jobs.access import JobHandle

T = TypeVar("T")

#: Seconds without a response after which a note is added before the log continues.
GAP_NOTE_AFTER = 60.0
#: More bytes than a log has: a log is delivered from its beginning.
WHOLE = 1 << 60


class Gap:
    """A period in which the shipped log cannot be read; yields a note at its end.

    A gap longer than ``GAP_NOTE_AFTER`` also yields a note before its end.
    """

    def __init__(self) -> None:
        self._last_read = time.time()
        self._error: ClusterError | None = None
        self._noted = False

    def failed(self, error: ClusterError) -> Iterator[LogChunk]:
        """Record that the job directory or the cluster did not answer."""
        self._error = self._error or error
        if not self._noted and time.time() - self._last_read > GAP_NOTE_AFTER:
            self._noted = True
            words = _("no new output since {last_read}; following continues").format(
                last_read=_clock(self._last_read)
            )
            yield _note(f"{words}: {error.message}")

    def closed(self) -> Iterator[LogChunk]:
        """Record that the log could be read again."""
        now = time.time()
        if self._error is not None:
            words = _("from {last_read} to {now} the log could not be read").format(
                last_read=_clock(self._last_read), now=_clock(now)
            )
            yield _note(
                _("{words} ({error}); it continues here").format(
                    words=words, error=self._error.message.rstrip(".")
                )
            )
        self._error, self._noted, self._last_read = None, False, now


def _clock(when: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(when))


def _note(words: str) -> LogChunk:
    return LogChunk("stderr", 0, b"", note=words)


class _Piece(NamedTuple):
    """The next bytes of a log, from the buffer; without data they are read up to ``end``."""

    key: LogKey
    data: bytes
    end: int


class LogFollower:
    """Follows the logs of one job.

    Parameters
    ----------
    tasks
        Names of tasks, or ``(ALL_TASKS,)``.
    cursor
        Start position.
    """

    def __init__(self, job: JobHandle, tasks: Sequence[str], cursor: LogCursor) -> None:
        self._tasks = tuple(tasks)
        self._at = {key: cursor.of(key) for key in cursor.keys}
        self._reader = LogReader(job)
        self._loop = background_loop("submarine-logs")
        self._delivery: LogDelivery
        self._cursor: LogCursor
        self._gap = Gap()
        #: Why the last read failed.
        self._trouble: ClusterError | None = None
        #: Logs of which a piece was read since the last call of ``_next``.
        self._done: list[LogKey] = []
        #: The last read attempt of each task.
        self._attempts: dict[str, str] = {}
        for key in self._at:
            if key.order >= attempt_order(self._attempts.get(key.task, "")):
                self._attempts[key.task] = key.attempt

    def chunks(self) -> Iterator[LogChunk]:
        """Yield chunks and notes until the job has ended."""
        try:
            self._run(self._open())
            while True:
                piece = self._run(self._next())
                trouble = self._trouble or self._delivery.source.trouble
                if isinstance(trouble, ClusterError):
                    yield from self._gap.failed(trouble)
                else:
                    yield from self._gap.closed()
                if piece is not None and not piece.data and self._delivery.source.ended:
                    yield from self._read_stored(self._run(self._unbuffered(piece.key)))
                elif piece is not None:
                    yield from self._read(piece)
                elif trouble is None and self._delivery.complete:
                    return
        finally:
            # Without waiting: a generator may be closed in any thread.
            asyncio.run_coroutine_threadsafe(self._close(), self._loop)

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the background thread, which waits for nothing meanwhile."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _open(self) -> None:
        def call(function: Any, *args: Any, **kwargs: Any) -> Any:
            return in_thread(lambda: function(*args, **kwargs))

        source = LogSource(lambda: self._reader, call, thorough=True)
        self._delivery = LogDelivery(source, self._tasks, self._at, WHOLE, streamed=True)
        self._cursor = self._delivery.cursor
        for key, offset in self._at.items():
            self._cursor.move(key, offset)
        source.add(self._delivery)

    async def _close(self) -> None:
        with suppress(AttributeError):  # it was not opened
            self._delivery.close()
            self._delivery.source.remove(self._delivery)

    async def _next(self) -> _Piece | None:
        """Wait for the next piece; None if the state has changed instead."""
        delivery, source = self._delivery, self._delivery.source
        for read in self._done:
            delivery.delivered(read)
        self._done = []
        key = delivery.next_log()
        if key is None and source.failure is None and (self._trouble or not delivery.complete):
            await delivery.wait()
            key = delivery.next_log()
        if source.failure is not None:
            raise source.failure
        if key is None:
            return None
        known, begin = source.logs[key], self._cursor.of(key)
        data = known.kept(begin, LIVE_PIECE)
        return _Piece(key, data, begin + len(data) if data else known.kept_from)

    def _read(self, piece: _Piece) -> Iterator[LogChunk]:
        key, end = piece.key, piece.end
        yield from self._switch(key.task, key.attempt)
        if piece.data:
            chunk = LogChunk(key.stream, end - len(piece.data), piece.data, key.task, key.attempt)
            yield from self._fresh(chunk)
            self._done.append(key)
            return
        yield from self._read_stored({key: end})

    def _read_stored(self, ends: Mapping[LogKey, int]) -> Iterator[LogChunk]:
        """Yield the unread bytes of logs up to these ends, in order of time."""
        try:
            parts = {key: (self._cursor.of(key), end) for key, end in ends.items()}
            for chunk in merged_parts(self._reader, parts):
                self._trouble = None
                yield from self._gap.closed()
                if not self._cursor.gap(LogKey(chunk.task, chunk.attempt, chunk.stream), chunk.end):
                    continue  # Read already, as the rest of an attempt before the next one.
                yield from self._switch(chunk.task, chunk.attempt)
                yield from self._fresh(chunk)
            self._trouble = None
        except NoAccessError:
            raise
        except ClusterError as error:
            self._trouble = error
        for key, end in ends.items():
            yield from self._finish(key, end)

    async def _unbuffered(self, first: LogKey) -> dict[LogKey, int]:
        """Return the logs whose next bytes are not in the buffer, with the end of these bytes."""
        logs, keys = self._delivery.source.logs, [first]
        while (key := self._delivery.next_log()) is not None:
            if logs[key].kept(self._cursor.of(key), 1):
                self._done.append(key)  # It comes again.
            else:
                keys.append(key)
        return {key: logs[key].kept_from for key in sorted(keys)}

    def _finish(self, key: LogKey, end: int) -> Iterator[LogChunk]:
        """Go on after the bytes of a log up to ``end`` were read, as far as they were there."""
        if not self._cursor.gap(key, end):
            self._done.append(key)
            return
        to = self._run(self._missing(key))
        if to is not None:
            words = _("{lost} bytes of {stream} of {task} are not available now").format(
                lost=self._cursor.gap(key, to), stream=key.stream, task=key.task
            )
            self._cursor.move(key, to)
            yield LogChunk(key.stream, to, b"", key.task, key.attempt, note=words)

    async def _missing(self, key: LogKey) -> int | None:
        """Request missing bytes again later, or return the offset to skip to."""
        if self._trouble is None:
            return self._delivery.give_up(key)
        self._delivery.retry_later(key)
        return None

    def _fresh(self, chunk: LogChunk) -> Iterator[LogChunk]:
        fresh = chunk.fresh(self._cursor)
        if fresh is not None:
            yield fresh

    def _switch(self, task: str, attempt: str) -> Iterator[LogChunk]:
        """Switch to another attempt of a task: yield the rest of the last one, then a note."""
        last = self._attempts.get(task)
        if last == attempt:
            return
        if last is not None:
            if attempt_order(attempt) > attempt_order(last):
                with suppress(ClusterError):  # it is read later, when it is listed
                    for stream in STREAMS:
                        key = LogKey(task, last, stream)
                        for chunk in self._reader.chunks(key, self._cursor.of(key)):
                            yield from self._fresh(chunk)
                words = _(
                    "{task} was started again; its log goes on with attempt {attempt}"
                ).format(task=task, attempt=attempt)
            else:
                words = _("more of attempt {attempt} of {task}").format(attempt=attempt, task=task)
            yield LogChunk("stderr", 0, b"", task, attempt, note=words)
        self._attempts[task] = attempt


def follow(job: JobHandle, tasks: Sequence[str], cursor: LogCursor) -> Iterator[LogChunk]:
    """Yield chunks of all streams of ``tasks`` from ``cursor`` until the job has ended."""
    return LogFollower(job, tasks, cursor).chunks()


def follow_newest(
    job: JobHandle, tasks: Sequence[str], offsets: Mapping[str, int]
) -> Iterator[LogChunk]:
    """Follow from ``offsets`` (stream -> bytes) of the newest attempt of the first task."""
    attempt = next(reversed(job.attempts(tasks[0])), FIRST_ATTEMPT) if any(offsets.values()) else ""
    at = {LogKey(tasks[0], attempt, name): place for name, place in offsets.items()}
    return follow(job, tasks, LogCursor(at if attempt else None))
