"""Brings live address and events to the job directory, and brings back whether to stop.

A thread of its own: the coordinator never waits for the file system. What cannot be shipped now
is shipped later. Does not publish the record.
"""

from __future__ import annotations

import json
import os
import random
import threading
import time
from contextlib import suppress
from typing import Any, Callable

from submarine_runtime.coordinator.record import JobStatus
from submarine_runtime.protocol import layout
from submarine_runtime.storage import Store, StoreError, asked_to_cancel

#: Seconds between two looks at whether there is something to ship.
TICK = 0.5
#: Seconds between two looks for ``cancel.json`` and for a later attempt of the application.
CHECK_SECONDS = 10.0
LONGEST_BACKOFF = 10.0
SHIPPED_FILE = "shipped.json"


class Shipper:
    """The thread.

    Parameters
    ----------
    directory
        Working directory; holds how much was shipped.
    attempt
        Number of the application's attempt.
    tell
        Called with messages ``cancel`` and ``superseded``.
    trouble
        Called once an outage with a sentence.
    """

    def __init__(
        self,
        store: Store,
        status: JobStatus,
        directory: str,
        attempt: int,
        tell: Callable[[dict[str, Any]], None],
        trouble: Callable[[str], None],
    ) -> None:
        self._store, self._status, self._attempt = store, status, attempt
        self._tell, self._trouble = tell, trouble
        self._path = os.path.join(directory, SHIPPED_FILE)
        self._files, self._events = self._read() if status.remembered else (0, 0)
        self._live: bytes | None = None
        self._wake = threading.Event()
        self._lock = threading.Lock()
        self._stopping = self._in_trouble = False
        self._next_check = 0.0
        self._thread = threading.Thread(target=self._run, name="shipping", daemon=True)

    @property
    def operations(self) -> int:
        """NameNode operations so far."""
        return self._store.operations

    @property
    def files(self) -> int:
        """Files published so far."""
        return self._store.files

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def announce(self, host: str, port: int) -> None:
        """Publish where the coordinator listens."""
        live = {"host": host, "port": port, "pid": os.getpid(), "time": time.time()}
        self._live = json.dumps({**live, "attempt": self._attempt}).encode()
        self._wake.set()

    def stop(self, timeout: float) -> None:
        """End the thread; what is not shipped then is left for ``flush``."""
        self._stopping = True
        self._wake.set()
        if self._thread.ident is not None:
            self._thread.join(timeout)

    def flush(self, store: Store | None = None) -> None:
        """Ship all events now.

        Raises
        ------
        StoreError
            If that fails; it may be tried again.
        """
        if not self._lock.acquire(timeout=0.05 if store is not None else 30.0):
            return  # the thread is at it
        try:
            self._ship_events(store or self._store)
        finally:
            self._lock.release()

    def _read(self) -> tuple[int, int]:
        """Files and events that were shipped; -1 where only the job directory knows."""
        try:
            with open(self._path, encoding="utf-8") as file:
                shipped = json.load(file)
            return int(shipped["files"]), int(shipped["events"])
        except (OSError, ValueError, KeyError):
            return -1, 0

    def _run(self) -> None:
        pause = TICK
        while not self._stopping:
            self._wake.wait(pause)
            self._wake.clear()
            try:
                self._round()
                pause, self._in_trouble = TICK, False
            except StoreError as exc:
                if not self._in_trouble:
                    self._trouble(str(exc))
                self._in_trouble = True
                pause = min(LONGEST_BACKOFF, pause * 2) * random.uniform(0.5, 1.0)  # noqa: S311

    def _round(self) -> None:
        self._store.gate()  # a check right after a suspend, also when nothing is to be shipped
        # First: a superseded coordinator must not replace the live address of the newer one.
        now = time.monotonic()
        if now >= self._next_check:
            self._check()
            self._next_check = now + CHECK_SECONDS
        if self._live is not None:
            self._store.publish(layout.LIVE, self._live)
            self._live = None
        if self._status.wanted:
            self._status.wanted = False
            try:
                with self._lock:
                    self._ship_events(self._store)
            except StoreError:
                self._status.wanted = True
                raise

    def _check(self) -> None:
        names = [entry.name for entry in self._store.entries("")]
        if layout.newest_claim(names) > self._attempt:
            self._tell({"type": "superseded"})
        asked = asked_to_cancel(self._store) if layout.CANCEL in names else None
        if asked is not None:
            self._tell({"type": "cancel", **asked})

    def _count_shipped(self, store: Store) -> None:
        """Find in the job directory how much was shipped before the coordinator was restarted."""
        writer, files, events = layout.coordinator_writer(self._attempt), 0, 0
        while (data := store.read(layout.event_segment(writer, files))) is not None:
            files, events = files + 1, events + len(data.splitlines())
        self._files, self._events = files, events

    def _ship_events(self, store: Store) -> None:
        if self._files < 0:
            self._count_shipped(store)
        events = self._status.events_after(self._status.inherited + self._events)
        if not events:
            return
        lines = b"".join(json.dumps(event).encode() + b"\n" for event in events)
        writer = layout.coordinator_writer(self._attempt)
        store.publish(layout.event_segment(writer, self._files), lines)
        self._events += len(events)
        self._files += 1
        temporary = self._path + ".new"
        try:
            with open(temporary, "w", encoding="utf-8") as file:
                json.dump({"files": self._files, "events": self._events}, file)
            os.replace(temporary, self._path)
        except OSError:  # a full disk: no number is better than an old one
            with suppress(OSError):
                os.unlink(self._path)
