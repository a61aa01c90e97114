"""Read the logs of one job by offset: from the running job, otherwise from the job directory.

A reader caches its client and its listings for seconds and the final record without a limit, so
that a page of the server costs one or two calls. Blocks; thread-safe.
"""

from __future__ import annotations

import contextlib
import http.client
import time
from array import array
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from submarine_jobs.access import AgentClient, LogChunk, NoTokenError
from submarine_jobs.errors import ClusterError, UsageError
from submarine_jobs.logs.shipped_log import ShippedLog
from submarine_jobs.logs.times import Mark, parse_columns, read_index
from submarine_runtime.protocol import JobRecord, LogKey, layout, parse_log_key, wire
from submarine_runtime.translation import _

if TYPE_CHECKING:
    from submarine_jobs.access import JobHandle

T = TypeVar("T")

#: Maximum number of bytes per read.
MAX_READ = wire.MAX_LOG_BYTES
#: Seconds for which the client, a missing final record and a listing are cached.
CLIENT_SECONDS, END_SECONDS, LISTING_SECONDS = 5.0, 2.0, 1.0
#: Maximum number of cached listings and of cached indexes (64 KiB each) per job.
MAX_LISTINGS, MAX_INDEXES = 256, 512


class Times(NamedTuple):
    """Offsets and times of a log; ``exact`` if the task recorded them, not the upload."""

    marks: list[Mark]
    exact: bool


class TimeIndex(NamedTuple):
    """As ``Times``, in little memory."""

    offsets: array[int]
    times: array[float]
    exact: bool

    @staticmethod
    def of(offsets: Iterable[int], times: Iterable[float], *, exact: bool) -> TimeIndex:
        """Return the index with these marks."""
        return TimeIndex(array("q", offsets), array("d", times), exact)

    def block_of(self, offset: int) -> int:
        """Return the number of the mark that has the time of a byte; their count after the last."""
        return bisect_right(self.offsets, offset)

    def time_of(self, offset: int) -> float:
        """Return the time at which a byte was written, after the last mark its time; 0: unknown."""
        number = min(self.block_of(offset), len(self.times) - 1)
        return self.times[number] if number >= 0 else 0.0


#: The index of a log without times.
NO_INDEX = TimeIndex.of([], [], exact=False)


def check_log_names(task: str, attempt: str | None) -> None:
    """Raise UsageError for an invalid task or attempt, because both become parts of a path."""
    try:
        layout.split_task(task)
    except ValueError as error:
        raise UsageError(f"{error}.") from None
    if attempt is not None and layout.parse_attempt(attempt) is None:
        raise UsageError(
            _("{attempt!r} is not an attempt.").format(attempt=attempt[:40]),
            _("One looks like e1-a1."),
        )


def log_key(task: str, attempt: str, stream: str) -> LogKey:
    """Validate the name of a log: its parts become parts of a path. No attempt: the newest one.

    Raises
    ------
    UsageError
        If a part is invalid.
    """
    check_log_names(task, attempt or None)
    if stream not in layout.STREAMS:
        raise UsageError(
            _("There is no log stream {stream!r}.").format(stream=stream[:40]),
            _("Choose stdout, stderr or helper."),
        )
    key = LogKey(task, attempt, stream)
    if not str(key).isprintable():  # the pattern accepts a newline at the end
        raise UsageError(_("The name of a log must not contain control characters."))
    return key


class LogReader:
    """Reads the logs of one job."""

    def __init__(self, job: JobHandle) -> None:
        self.job = job
        self._lock = Lock()
        self._listings: OrderedDict[tuple[str, str], tuple[ShippedLog, float]] = OrderedDict()
        self._indexes: OrderedDict[LogKey, tuple[TimeIndex, float]] = OrderedDict()
        self._client: tuple[AgentClient | None, float] = (None, 0.0)
        self._end: tuple[JobRecord | None, float] = (None, 0.0)
        #: Whether the running job is shared with this user: its logs are then the uploaded ones.
        self.no_token = False

    def final_record(self, *, check_directory: bool = False) -> JobRecord | None:
        """Return the final record if the job has ended.

        Parameters
        ----------
        check_directory
            Also read the job directory, not only the local index.
        """
        found, _ = self._end
        if found is not None:
            return found
        known = self.job.index_entry()
        if known is not None and known.final:
            found = known.record
        elif check_directory:
            found = self._cached("_end", END_SECONDS, self._read_record)
        if found is not None:
            self._end = (found, 0.0)
        return found

    def _read_record(self) -> JobRecord | None:
        try:
            return self.job.directory.record()
        except (ValueError, KeyError, TypeError):
            return None

    def client(self) -> AgentClient | None:
        """Return a client of the running job; None if nothing listens."""
        if self.final_record() is not None:
            return None
        return self._cached("_client", CLIENT_SECONDS, self._open_client)

    def _open_client(self) -> AgentClient | None:
        self.no_token = False
        try:
            return self.job.agent()
        except NoTokenError:
            self.no_token = True
            return None
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None

    def _cached(self, name: str, seconds: float, load: Callable[[], T]) -> T:
        value, until = getattr(self, name)
        if time.monotonic() >= until:
            value = load()
            setattr(self, name, (value, time.monotonic() + seconds))
        return value  # type: ignore[no-any-return]

    def invalidate(self) -> None:
        """Read the address and the end of the job again next time."""
        self._client = (None, 0.0)
        if self._end[0] is None:
            self._end = (None, 0.0)

    def live(self, key: LogKey, offset: int, limit: int) -> tuple[LogChunk, int] | None:
        """Read bytes and the length of a log from the running job; None if it does not respond."""
        return self._request(
            lambda client: client.log(key.task, key.stream, offset, limit, key.attempt)
        )

    def _request(self, send: Callable[[AgentClient], T]) -> T | None:
        client = self.client()
        if client is None:
            return None
        try:
            return send(client)
        except ClusterError as error:
            if isinstance(error.__cause__, OSError | http.client.HTTPException):
                self._client = (None, 0.0)  # read the address again: connecting failed
            return None

    def shipped(self, key: LogKey, *, fresh: bool = False) -> ShippedLog:
        """Return the uploaded log, listed within the last ``LISTING_SECONDS``.

        Parameters
        ----------
        fresh
            List it now.
        """
        task_attempt = key[:2]
        with self._lock:
            log, until = self._listings.get(task_attempt) or (
                ShippedLog(self.job.directory, key.task, key.attempt or None),
                0.0,
            )
        ended = self._end[0] is not None
        # A listing from before the end lacks the last upload.
        outdated = ended and until != float("inf")
        if fresh or outdated or time.monotonic() >= until:
            log.refresh()
            until = float("inf") if ended else time.monotonic() + LISTING_SECONDS
            with self._lock:
                self._listings[task_attempt] = (log, until)
                while len(self._listings) > MAX_LISTINGS:
                    self._listings.popitem(last=False)
        return log

    def lengths(self, keys: Iterable[LogKey]) -> dict[LogKey, int]:
        """Return the uploaded lengths of these logs, listed now; empty logs are omitted."""
        listed: set[tuple[str, str]] = set()
        found = {}
        for key in keys:
            length = self.shipped(key, fresh=key[:2] not in listed).length(key.stream)
            listed.add(key[:2])
            if length:
                found[key] = length
        return found

    def read(self, key: LogKey, offset: int, limit: int) -> tuple[LogChunk, int]:
        """Return at most ``limit`` bytes from ``offset`` (negative: from the end); length."""
        limit = max(0, limit)
        live = self.live(key, offset, limit)
        if live is not None:
            return live
        log = self.shipped(key)
        length = log.length(key.stream)
        begin = max(0, length + offset) if offset < 0 else min(offset, length)
        return log.read(key.stream, begin, limit), length

    def length(self, key: LogKey) -> int:
        """Return the current length of a log."""
        return self.read(key, 0, 0)[1]

    def times(self, key: LogKey) -> Times:
        """Return the write times of a log."""
        offsets, times, exact = self.index(key)
        return Times(list(map(Mark, offsets, times)), exact)

    def index(self, key: LogKey) -> TimeIndex:
        """Return the write times of a log, cached for ``LISTING_SECONDS``."""
        with self._lock:
            index, until = self._indexes.get(key) or (NO_INDEX, 0.0)
        if time.monotonic() >= until:
            shipped = read_index(self.job.directory, key)
            found = self._live_index(key) if shipped is None else shipped
            if found is not None:
                index = TimeIndex.of(*parse_columns(found), exact=True)
            else:
                marks = self.shipped(key).marks(key.stream)
                index = TimeIndex.of(
                    (mark.offset for mark in marks), (mark.time for mark in marks), exact=False
                )
            until = float("inf") if shipped is not None else time.monotonic() + LISTING_SECONDS
            with self._lock:
                self._indexes[key] = (index, until)
                while len(self._indexes) > MAX_INDEXES:
                    self._indexes.popitem(last=False)
        return index

    def _live_index(self, key: LogKey) -> bytes | None:
        return self._request(lambda client: client.times(key.task, key.stream, key.attempt))

    def read_through(self, key: LogKey, offset: int, limit: int) -> bytes:
        """Read bytes for large reads: from the running job only what is not uploaded yet."""
        log = self.shipped(key)
        left = log.length(key.stream) - offset
        if left > 0:
            return log.read(key.stream, offset, min(limit, left)).data
        live = self.live(key, offset, min(limit, MAX_READ))
        if live is None:
            # The job has just ended: the rest is uploaded now.
            return self.shipped(key, fresh=True).read(key.stream, offset, min(limit, MAX_READ)).data
        chunk, _ = live
        return chunk.data if chunk.offset == offset else b""

    def chunks(
        self, key: LogKey, begin: int = 0, end: int | None = None, *, piece: int | None = None
    ) -> Iterator[LogChunk]:
        """Yield a log in order: first the uploaded bytes, then the rest from the running job.

        Parameters
        ----------
        end
            Offset to stop at; None: the end of the log, also if it grows meanwhile.
        piece
            Bytes of each read; None: large reads, with read-ahead.
        """
        for _unused in range(2):
            ended = self.final_record() is not None
            with contextlib.suppress(FileNotFoundError):
                for chunk in self.shipped(key, fresh=True).chunks(key.stream, begin, end, piece):
                    begin = chunk.end
                    yield chunk
            while end is None or begin < end:
                limit = min(MAX_READ, piece or MAX_READ, MAX_READ if end is None else end - begin)
                live = self.live(key, begin, limit)
                if live is None:
                    break
                if not live[0].data or live[0].offset != begin:
                    return
                begin = live[0].end
                yield live[0]
            else:
                return
            if ended:
                return  # Otherwise the job may just have ended, and the rest is uploaded now.


def parsed_lengths(lengths: Mapping[str, int]) -> dict[LogKey, int]:
    """Return the valid log names of a record with their lengths."""
    return {
        key: length
        for text, length in lengths.items()
        if (key := parse_log_key(text)) is not None and length >= 0
    }
