"""Ships one log to the job directory: immutable segments, named by where they begin, and an index.

Holds positions, never log text.
"""

from __future__ import annotations

import os
import time
from typing import Mapping

from submarine_runtime.agent.store import Store
from submarine_runtime.protocol import layout
from submarine_runtime.protocol.launch import AgentConfig

LARGEST_SEGMENT = 16 << 20
LONGEST_INTERVAL = 300.0
MAX_INDEX = 4096


class LogShipper:
    """Ships one stream: segments while it grows, its index at the end.

    A segment is published when ``ship_bytes`` or a 32nd of what is there came in, whichever is
    more, or when something came in and the interval is over; the interval grows with the job's
    age. So the number of files grows with the logarithm of log and age.
    """

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
        self.shipped = 0

    def length(self) -> int:
        """Length of the log now."""
        try:
            return os.stat(self._path).st_size
        except OSError:
            return self.shipped

    def note(self) -> None:
        """Remember that the log has this length at this time."""
        length = self.length()
        if length > (self._index[-1][0] if self._index else 0):
            self._index.append((length, time.time()))
            if len(self._index) > MAX_INDEX:
                del self._index[1::2]

    def index(self) -> bytes:
        """A line for each length that was noted: ``offset seconds``."""
        return "".join(f"{at} {moment:.3f}\n" for at, moment in list(self._index)).encode()

    def due(self) -> bool:
        """Whether there is a segment to publish now."""
        new = self.length() - self.shipped
        if new <= 0:
            return False
        now = time.monotonic()
        interval = min(LONGEST_INTERVAL, max(self._interval, (now - self._began) / 64))
        enough = max(self._size, min(LARGEST_SEGMENT, self.shipped // 32))
        return new >= enough or now - self._last >= interval

    def ship(self) -> None:
        """Publish one segment, at most 16 MiB."""
        length = min(self.length() - self.shipped, LARGEST_SEGMENT)
        if length <= 0:
            return
        name = layout.segment_name(self._stream, self.shipped)
        self.shipped += self._store.upload(
            f"{self._directory}/{name}", self._path, self.shipped, length
        )
        self._last = time.monotonic()

    def ship_rest(self) -> None:
        """Publish all that is left, then the index."""
        while self.shipped < self.length():
            self.ship()
        if self._index and not self._indexed:
            name = layout.index_name(self._stream)
            self._store.publish(f"{self._directory}/{name}", self.index())
            self._indexed = True


def log_shippers(
    store: Store, directory: str, logs: Mapping[str, str], config: AgentConfig
) -> dict[str, LogShipper]:
    """Stream -> its shipper; ``logs`` is stream -> file."""
    return {
        stream: LogShipper(store, directory, stream, path, config.ship_interval, config.ship_bytes)
        for stream, path in logs.items()
    }
