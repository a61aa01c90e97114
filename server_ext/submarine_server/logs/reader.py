"""The logs of one job, read by offset: from the job itself while it runs, else what was shipped.

Remembers for seconds what does not change that fast (where the job listens, which segments there
are) and for good what never changes (an ended job's lengths), so a page costs one or two calls.
Blocks; safe for several threads. Does not follow (``channel.job_log``) and does not search.
"""

from __future__ import annotations

import http.client
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from submarine_jobs.access import AgentAddress, AgentClient, LogChunk
from submarine_jobs.errors import ClusterError, UsageError
from submarine_jobs.logs import (
    LogKey,
    Mark,
    ShippedLog,
    key_of,
    parse_index,
    reading as job_logs,
    shipped_index,
)
from submarine_runtime.protocol import layout, wire
from submarine_runtime.protocol.record import JobRecord

if TYPE_CHECKING:
    from submarine_jobs.client import Job

T = TypeVar("T")

#: Bytes of one read.
MOST = wire.MAX_LOG_BYTES
#: Seconds for which a job's address, its end and a listing of segments are believed.
ADDRESS_SECONDS, END_SECONDS, LISTING_SECONDS = 5.0, 2.0, 1.0
#: Logs of one job whose listings are remembered.
MAX_LISTINGS = 64


class Times(NamedTuple):
    """When a log had which length; ``exact``: as its task noted, not as it was shipped."""

    marks: list[Mark]
    exact: bool


def log_key(task: str, attempt: str, stream: str) -> LogKey:
    """The log of these names, checked: they become parts of a path.

    Raises
    ------
    UsageError
        If one is nothing of the kind.
    """
    job_logs.check(task, attempt)
    if stream not in layout.STREAMS:
        raise UsageError(f"There is no log stream {stream[:40]!r}.", "Choose stdout or stderr.")
    key = LogKey(task, attempt, stream)
    if not str(key).isprintable():  # a newline at the end passes for none
        raise UsageError("The name of a log holds no control characters.")
    return key


class LogReader:
    """Reads the logs of one job."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self._lock = Lock()
        self._listings: OrderedDict[tuple[str, str], tuple[ShippedLog, float]] = OrderedDict()
        self._times: OrderedDict[LogKey, tuple[Times, float]] = OrderedDict()
        self._address: tuple[AgentAddress | None, float] = (None, 0.0)
        self._end: tuple[JobRecord | None, float] = (None, 0.0)

    def final(self, *, ask: bool = False) -> JobRecord | None:
        """The job's last word, once there is one.

        Parameters
        ----------
        ask
            Look into the job directory, too, not only into what this machine knows.
        """
        found, _ = self._end
        if found is not None:
            return found
        known = self.job.index_entry()
        if known is not None and known.final:
            found = known.record
        elif ask:
            found = self._remembered("_end", END_SECONDS, self._published)
        if found is not None:
            self._end = (found, 0.0)
        return found

    def _published(self) -> JobRecord | None:
        try:
            return self.job.directory.record()
        except (ValueError, KeyError, TypeError):
            return None

    def address(self) -> AgentAddress | None:
        """Where the job listens; None where it does not, or has ended."""
        if self.final() is not None:
            return None
        return self._remembered("_address", ADDRESS_SECONDS, self._listening)

    def _listening(self) -> AgentAddress | None:
        try:
            return self.job.directory.address()
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None

    def _remembered(self, name: str, seconds: float, ask: Callable[[], T]) -> T:
        value, until = getattr(self, name)
        if time.monotonic() >= until:
            value = ask()
            setattr(self, name, (value, time.monotonic() + seconds))
        return value  # type: ignore[no-any-return]

    def forget_address(self) -> None:
        """Nobody listens there: look again next time."""
        self._address = (None, 0.0)

    def look_again(self) -> None:
        """Believe nothing that was remembered of where the job is and whether it has ended."""
        self.forget_address()
        if self._end[0] is None:
            self._end = (None, 0.0)

    def live(self, key: LogKey, offset: int, limit: int) -> tuple[LogChunk, int] | None:
        """Bytes and the length of a log from the running job; None where it does not tell."""
        address = self.address()
        if address is None:
            return None
        try:
            return AgentClient(address).log(key.task, key.stream, offset, limit, key.attempt)
        except ClusterError as error:
            if isinstance(error.__cause__, OSError | http.client.HTTPException):
                self.forget_address()
            return None

    def shipped(self, key: LogKey, *, fresh: bool = False) -> ShippedLog:
        """The log as far as it was shipped, listed within the last ``LISTING_SECONDS``.

        Parameters
        ----------
        fresh
            Listed now.
        """
        place = key[:2]
        with self._lock:
            log, until = self._listings.get(place) or (ShippedLog(self.job.directory, *place), 0.0)
        ended = self._end[0] is not None
        # A listing from before the end lacks what was shipped last.
        outdated = ended and until != float("inf")
        if fresh or outdated or time.monotonic() >= until:
            log.refresh()
            until = float("inf") if ended else time.monotonic() + LISTING_SECONDS
            with self._lock:
                self._listings[place] = (log, until)
                while len(self._listings) > MAX_LISTINGS:
                    self._listings.popitem(last=False)
        return log

    def lengths(self, keys: Iterable[LogKey]) -> dict[LogKey, int]:
        """How much of these logs was shipped, listed now; those of which nothing was left out."""
        listed: set[tuple[str, str]] = set()
        found = {}
        for key in keys:
            length = self.shipped(key, fresh=key[:2] not in listed).length(key.stream)
            listed.add(key[:2])
            if length:
                found[key] = length
        return found

    def read(self, key: LogKey, offset: int, limit: int) -> tuple[LogChunk, int]:
        """At most ``limit`` bytes from ``offset`` (negative: from the end), and the length."""
        limit = max(0, min(limit, MOST))
        told = self.live(key, offset, limit)
        if told is not None:
            return told
        log = self.shipped(key)
        length = log.length(key.stream)
        begin = max(0, length + offset) if offset < 0 else min(offset, length)
        return log.read(key.stream, begin, limit), length

    def length(self, key: LogKey) -> int:
        """Bytes of the log so far."""
        return self.read(key, 0, 0)[1]

    def times(self, key: LogKey) -> Times:
        """When the log had which length, as of ``LISTING_SECONDS`` ago at most."""
        with self._lock:
            times, until = self._times.get(key) or (Times([], False), 0.0)
        if time.monotonic() >= until:
            shipped = shipped_index(self.job.directory, key)
            found = self._live_index(key) if shipped is None else shipped
            times = Times(
                self.shipped(key).marks(key.stream) if found is None else found, found is not None
            )
            until = float("inf") if shipped is not None else time.monotonic() + LISTING_SECONDS
            with self._lock:
                self._times[key] = (times, until)
                while len(self._times) > MAX_LISTINGS:
                    self._times.popitem(last=False)
        return times

    def _live_index(self, key: LogKey) -> list[Mark] | None:
        address = self.address()
        if address is None:
            return None
        try:
            return parse_index(AgentClient(address).times(key.task, key.stream, key.attempt))
        except ClusterError as error:
            if isinstance(error.__cause__, OSError | http.client.HTTPException):
                self.forget_address()
            return None

    def read_through(self, key: LogKey, offset: int, limit: int) -> bytes:
        """The same for whoever reads much: of a running job only what was not shipped yet."""
        log = self.shipped(key)
        left = log.length(key.stream) - offset
        if left > 0:
            return log.read(key.stream, offset, min(limit, left)).data
        told = self.live(key, offset, min(limit, MOST))
        if told is None:
            # It ended a moment ago: the rest has been shipped since.
            return self.shipped(key, fresh=True).read(key.stream, offset, min(limit, MOST)).data
        chunk, _ = told
        return chunk.data if chunk.offset == offset else b""


def recorded(lengths: Mapping[str, int]) -> dict[LogKey, int]:
    """The logs of a record: those whose names are names of logs."""
    return {
        key: length
        for text, length in lengths.items()
        if (key := key_of(text)) is not None and length >= 0
    }
