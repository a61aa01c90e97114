"""Brings live address, events and log segments to the job directory, in a thread of its own.

The program never waits for it: what cannot be shipped now lies in files on the node's disk and is
shipped later. Holds positions, never log text. Does not save outputs or the record.
"""

from __future__ import annotations

import json
import os
import random
import threading
import time
from typing import Callable, Mapping

from submarine_runtime.agent.claim import asked_to_cancel
from submarine_runtime.agent.store import Store, StoreError
from submarine_runtime.protocol import layout
from submarine_runtime.protocol.launch import AgentConfig

TICK = 1.0
LARGEST_SEGMENT = 16 << 20
LONGEST_INTERVAL = 300.0
LONGEST_BACKOFF = 10.0
MAX_INDEX = 4096
CANCEL_CHECK = 10.0


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
            lines = "".join(f"{offset} {moment:.3f}\n" for offset, moment in self._index)
            self._store.publish(f"{self._directory}/{self._stream}.index", lines.encode())
            self._indexed = True


def log_shippers(
    store: Store, directory: str, logs: Mapping[str, str], config: AgentConfig
) -> dict[str, LogShipper]:
    """Stream -> its shipper; ``logs`` is stream -> file."""
    return {
        stream: LogShipper(store, directory, stream, path, config.ship_interval, config.ship_bytes)
        for stream, path in logs.items()
    }


class Publisher:
    """The thread.

    Parameters
    ----------
    logs
        One shipper a stream.
    events_after
        Events from a number on, as plain JSON.
    on_cancel
        Called when ``cancel.json`` has appeared.
    on_trouble
        Called once an outage with the sentence of what failed.
    """

    def __init__(
        self,
        store: Store,
        logs: dict[str, LogShipper],
        events_after: Callable[[int], list[dict[str, object]]],
        on_cancel: Callable[[dict[str, str]], None],
        on_trouble: Callable[[str], None],
    ) -> None:
        self._store = store
        self._logs = logs
        self._events_after = events_after
        self._on_cancel = on_cancel
        self._on_trouble = on_trouble
        self._live: bytes | None = None
        self._events_shipped = 0
        self._event_files = 0
        self._events_wanted = False
        self._cancel_checked: float | None = None
        self._in_trouble = False
        self._wake = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="publisher", daemon=True)

    def start(self) -> None:
        """Begin to ship."""
        self._thread.start()

    def announce(self, host: str, port: int) -> None:
        """Publish where the agent listens."""
        live = {"host": host, "port": port, "pid": os.getpid(), "time": time.time()}
        self._live = json.dumps(live).encode()
        self._wake.set()

    def want_events(self) -> None:
        """Ship the events soon: a change of state that matters."""
        self._events_wanted = True
        self._wake.set()

    def stop(self, timeout: float) -> bool:
        """End the thread; False when it hangs in a call for longer than ``timeout``."""
        self._stopping = True
        self._wake.set()
        if self._thread.ident is not None:
            self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        pause = TICK
        while True:
            self._wake.wait(pause)
            self._wake.clear()
            if self._stopping:
                return
            try:
                self._round()
                pause, self._in_trouble = TICK, False
            except StoreError as exc:
                if not self._in_trouble:
                    self._on_trouble(str(exc))
                self._in_trouble = True
                longest = LONGEST_BACKOFF if exc.transient else 6 * LONGEST_BACKOFF
                pause = min(longest, pause * 2) * random.uniform(0.5, 1.0)  # noqa: S311

    def _round(self) -> None:
        if self._live is not None:
            live = self._live
            self._store.publish(layout.LIVE, live)
            self._live = None
            self._check_cancel()
        for log in self._logs.values():
            log.note()
        due = [log for log in self._logs.values() if log.due()]
        if self._events_wanted or due:
            self._events_wanted = False
            try:
                self._ship_events()
            except StoreError:
                self._events_wanted = True
                raise
        for log in due:
            log.ship()
        if due:
            self._check_cancel()

    def _ship_events(self) -> None:
        events = self._events_after(self._events_shipped)
        if not events:
            return
        lines = b"".join(json.dumps(event).encode() + b"\n" for event in events)
        self._store.publish(layout.event_segment("agent", self._event_files), lines)
        self._events_shipped += len(events)
        self._event_files += 1

    def _check_cancel(self) -> None:
        """Who cannot reach our port leaves ``cancel.json``; looked for with what is shipped."""
        now = time.monotonic()
        if self._cancel_checked is not None and now - self._cancel_checked < CANCEL_CHECK:
            return
        self._cancel_checked = now
        asked = asked_to_cancel(self._store)
        if asked is not None:
            self._on_cancel(asked)
