"""Ship one log to the job directory: immutable segments, named by their offset, and an index.

Log text is not kept in memory.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import contextmanager, suppress
from typing import Iterator, Mapping

from submarine_runtime.protocol import AgentConfig, layout
from submarine_runtime.storage import Appender, Store, StoreError
from submarine_runtime.translation import _

LARGEST_SEGMENT = 16 << 20
LONGEST_INTERVAL = 300.0
MAX_INDEX = 4096
COPY_BYTES = 1 << 18
#: Consecutive errors of growing files after which segments are published whole: a gateway may not
#: accept a body of unknown length.
MAX_FAILURES = 3
#: Factor of the interval while a growing file is written: new data is safe already, and the lease
#: of the open file costs the NameNode calls that fewer segments save.
GROWING_INTERVAL = 1.25
#: Seconds to wait for another thread that ships the same log.
LOCK_SECONDS = 0.5


class LogShipper:
    """Ships one stream: segments while it grows, its index at the end.

    A segment is finished after ``ship_bytes`` or a 32nd of the shipped length, whichever is more,
    or if there is new data when the interval ends; the interval grows with the job's age. So the
    number of files grows with the logarithm of length and age. Until then new data is sent at once
    to a file with the suffix of growing segments, over one connection. This needs no more
    operations of the NameNode, and a container that is killed loses only what came since the last
    call.

    May be called from several threads.

    Parameters
    ----------
    directory
        Directory of the segments in the job directory.
    path
        Local file of the log.
    interval
        Seconds between two segments of a young job.
    size
        Bytes after which a segment is finished.
    """

    #: Whether new data is sent before the segment is finished.
    continuous = True

    def __init__(
        self, store: Store, directory: str, stream: str, path: str, interval: float, size: int
    ) -> None:
        self._store = store
        self._directory = directory
        self._stream = stream
        self._path = path
        self._interval = interval
        self._size = size
        self._began = self._last = time.monotonic()
        self._index: list[tuple[int, float]] = []
        self._indexed = False
        self._lock = threading.RLock()
        self._growing: Appender | None = None
        self._sent = 0
        self._left_over = False
        self._failures = 0
        self.shipped = 0

    def length(self) -> int:
        """Return the current length of the log."""
        try:
            return os.stat(self._path).st_size
        except OSError:
            return self.shipped

    def note(self) -> None:
        """Add the current length and time to the index."""
        length = self.length()
        if length > (self._index[-1][0] if self._index else 0):
            self._index.append((length, time.time()))
            if len(self._index) > MAX_INDEX:
                del self._index[1::2]

    def index(self) -> bytes:
        """Return the index: a line ``offset seconds`` for each recorded length."""
        return "".join(f"{at} {moment:.3f}\n" for at, moment in list(self._index)).encode()

    def due(self) -> bool:
        """Return whether a segment is to be published now."""
        new = self.length() - self.shipped
        if new <= 0:
            return False
        now = time.monotonic()
        interval = max(self._interval, (now - self._began) / 64)
        if self._growing is not None:
            interval *= GROWING_INTERVAL
        interval = min(LONGEST_INTERVAL, interval)
        enough = max(self._size, min(LARGEST_SEGMENT, self.shipped // 32))
        return new >= enough or now - self._last >= interval

    def advance(self) -> None:
        """Send new data, and finish the segment if that is due."""
        with self._locked():
            if self.continuous and self._failures < MAX_FAILURES:
                self._send()
            if self.due():
                self.ship()

    def ship(self) -> None:
        """Finish the segment, at most 16 MiB."""
        with self._locked():
            length = min(self.length() - self.shipped, LARGEST_SEGMENT)
            if length <= 0:
                return
            name = f"{self._directory}/{layout.segment_name(self._stream, self.shipped)}"
            growing = self._growing_name()
            if self._growing is not None:
                self._send()
                with self._guarded() as file:
                    file.close()
                length = self._sent
                self._growing, self._left_over, self._sent = None, True, 0
                self._store.move(growing, name)
            else:
                length = self._store.upload(name, self._path, self.shipped, length)
                if self._left_over:
                    with suppress(StoreError):  # Readers skip it.
                        self._store.delete(growing)
            self._left_over, self._failures = False, 0
            self.shipped += length
            self._last = time.monotonic()

    def ship_rest(self) -> None:
        """Publish the rest of the log, then the index."""
        with self._locked():
            while self.shipped < self.length():
                self.ship()
            if self._index and not self._indexed:
                name = layout.index_name(self._stream)
                self._store.publish(f"{self._directory}/{name}", self.index())
                self._indexed = True

    def _send(self) -> None:
        """Send new data to the growing file, which begins with the segment."""
        end = min(self.length() - self.shipped, LARGEST_SEGMENT)
        if end <= self._sent:
            return
        if self._growing is None:
            try:
                self._growing = self._store.appender(self._growing_name())
            except StoreError as exc:
                self._failures += not exc.transient
                raise
        with self._guarded() as file, open(self._path, "rb") as log:
            log.seek(self.shipped + self._sent)
            while self._sent < end:
                data = log.read(min(COPY_BYTES, end - self._sent))
                if not data:
                    return
                file.append(data)
                self._sent += len(data)

    @contextmanager
    def _guarded(self) -> Iterator[Appender]:
        """Yield the growing file; after an error its segment is written again."""
        assert self._growing is not None
        try:
            yield self._growing
        except (StoreError, OSError):
            self._growing.abort()
            self._growing, self._left_over, self._sent = None, True, 0
            self._failures += 1
            raise

    @contextmanager
    def _locked(self) -> Iterator[None]:
        if not self._lock.acquire(timeout=LOCK_SECONDS):
            raise StoreError(
                _("{stream} is being shipped by another thread").format(stream=self._stream), True
            )
        try:
            yield
        finally:
            self._lock.release()

    def _growing_name(self) -> str:
        return f"{self._directory}/{layout.growing_name(self._stream, self.shipped)}"


def log_shippers(
    store: Store, directory: str, logs: Mapping[str, str], config: AgentConfig
) -> dict[str, LogShipper]:
    """Return stream -> shipper; ``logs`` is stream -> file."""
    return {
        stream: LogShipper(store, directory, stream, path, config.ship_interval, config.ship_bytes)
        for stream, path in logs.items()
    }
