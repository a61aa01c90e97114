"""Publish the coordinator's address and events in the job directory; check for cancels.

A separate thread does this, so the event loop never waits for the file system. What cannot be
published is published later.
"""

from __future__ import annotations

import json
import os
import threading
import time
from contextlib import suppress
from typing import Any, Callable

from submarine_runtime.backoff import Backoff
from submarine_runtime.coordinator.record import JobStatus
from submarine_runtime.files import replace_file
from submarine_runtime.protocol import layout
from submarine_runtime.storage import Store, StoreError, cancel_request

#: Seconds between two checks for new events.
TICK = 0.5
#: Seconds between two checks for ``cancel.json`` and for a later attempt of the application.
CHECK_SECONDS = 10.0
LONGEST_BACKOFF = 10.0
PUBLISHED_FILE = "shipped.json"


class EventPublisher:
    """Thread that publishes events.

    Parameters
    ----------
    directory
        Working directory; stores how much was published.
    attempt
        Number of the application's attempt.
    post
        Posts messages ``cancel`` and ``superseded`` to the event loop.
    on_outage
        Called once for each outage, with a sentence.
    """

    def __init__(
        self,
        store: Store,
        status: JobStatus,
        directory: str,
        attempt: int,
        post: Callable[[dict[str, Any]], None],
        on_outage: Callable[[str], None],
    ) -> None:
        self._store, self._status, self._attempt = store, status, attempt
        self._post, self._on_outage = post, on_outage
        self._path = os.path.join(directory, PUBLISHED_FILE)
        self._files, self._events = self._read() if status.restored_events else (0, 0)
        self._live: bytes | None = None
        self._wake = threading.Event()
        self._lock = threading.Lock()
        self._stopping = self._outage = False
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
        """Start the thread."""
        self._thread.start()

    def publish_address(self, host: str, port: int) -> None:
        """Publish the address of the coordinator's port."""
        live = {"host": host, "port": port, "pid": os.getpid(), "time": time.time()}
        self._live = json.dumps({**live, "attempt": self._attempt}).encode()
        self._wake.set()

    def stop(self, timeout: float) -> None:
        """End the thread; ``flush`` publishes the rest."""
        self._stopping = True
        self._wake.set()
        if self._thread.ident is not None:
            self._thread.join(timeout)

    def flush(self, store: Store | None = None) -> None:
        """Publish all events now.

        Raises
        ------
        StoreError
            If that fails; it may be tried again.
        """
        if not self._lock.acquire(timeout=0.05 if store is not None else 30.0):
            return  # The thread is publishing.
        try:
            self._publish_events(store or self._store)
        finally:
            self._lock.release()

    def _read(self) -> tuple[int, int]:
        """Return the published files and events; -1 files: count them in the job directory."""
        try:
            with open(self._path, encoding="utf-8") as file:
                shipped = json.load(file)
            return int(shipped["files"]), int(shipped["events"])
        except (OSError, ValueError, KeyError):
            return -1, 0

    def _run(self) -> None:
        pause, backoff = TICK, Backoff(2 * TICK, LONGEST_BACKOFF)
        while not self._stopping:
            self._wake.wait(pause)
            self._wake.clear()
            try:
                self._round()
                pause, self._outage = TICK, False
                backoff.reset()
            except StoreError as exc:
                if not self._outage:
                    self._on_outage(str(exc))
                self._outage = True
                pause = backoff.pause()

    def _round(self) -> None:
        self._store.gate()  # Checks after a suspend, also if there is nothing to publish.
        # First: a superseded coordinator must not replace the live address of the newer one.
        now = time.monotonic()
        if now >= self._next_check:
            self._check()
            self._next_check = now + CHECK_SECONDS
        if self._live is not None:
            self._store.publish(layout.LIVE, self._live)
            self._live = None
        if self._status.unpublished:
            self._status.unpublished = False
            try:
                with self._lock:
                    self._publish_events(self._store)
            except StoreError:
                self._status.unpublished = True
                raise

    def _check(self) -> None:
        names = [entry.name for entry in self._store.entries("")]
        if layout.newest_claim(names) > self._attempt:
            self._post({"type": "superseded"})
        cancelled = cancel_request(self._store) if layout.CANCEL in names else None
        if cancelled is not None:
            self._post({"type": "cancel", **cancelled})

    def _count_published(self, store: Store) -> None:
        """Count in the job directory what was published before the restart of the coordinator."""
        writer, files, events = layout.coordinator_writer(self._attempt), 0, 0
        while (data := store.read(layout.event_segment(writer, files))) is not None:
            files, events = files + 1, events + len(data.splitlines())
        self._files, self._events = files, events

    def _publish_events(self, store: Store) -> None:
        if self._files < 0:
            self._count_published(store)
        events = self._status.events_after(self._status.earlier_events + self._events)
        if not events:
            return
        lines = b"".join(json.dumps(event).encode() + b"\n" for event in events)
        writer = layout.coordinator_writer(self._attempt)
        store.publish(layout.event_segment(writer, self._files), lines)
        self._events += len(events)
        self._files += 1
        published = {"files": self._files, "events": self._events}
        try:
            replace_file(self._path, json.dumps(published).encode())
        except OSError:  # The disk is full: no number is better than an old one.
            with suppress(OSError):
                os.unlink(self._path)
