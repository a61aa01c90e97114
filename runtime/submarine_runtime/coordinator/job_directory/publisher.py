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

from submarine_runtime.coordinator.record import JobStatus
from submarine_runtime.files import replace_file
from submarine_runtime.protocol import layout
from submarine_runtime.record import EventSegments, live_address
from submarine_runtime.storage import PublishingThread, Store, StoreError, cancel_request

#: Seconds between two checks for ``cancel.json`` and for a later attempt of the application.
CHECK_SECONDS = 10.0
PUBLISHED_FILE = "shipped.json"


class EventPublisher(PublishingThread):
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

    interval = 0.5

    def __init__(
        self,
        store: Store,
        status: JobStatus,
        directory: str,
        attempt: int,
        post: Callable[[dict[str, Any]], None],
        on_outage: Callable[[str], None],
    ) -> None:
        super().__init__(on_outage)
        self._store, self._status, self._attempt = store, status, attempt
        self._post = post
        self._path = os.path.join(directory, PUBLISHED_FILE)
        self._events = self._read()
        self._live: bytes | None = None
        self._lock = threading.Lock()
        self._next_check = 0.0

    @property
    def operations(self) -> int:
        """NameNode operations so far."""
        return self._store.operations

    @property
    def files(self) -> int:
        """Files published so far."""
        return self._store.files

    def publish_address(self, host: str, port: int) -> None:
        """Publish the address of the coordinator's port."""
        self._live = live_address(host, port, attempt=self._attempt)
        self._wake.set()

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

    def _read(self) -> EventSegments | None:
        """Return what was published; None: count it in the job directory."""
        writer = layout.coordinator_writer(self._attempt)
        if not self._status.restored_events:
            return EventSegments(writer)
        try:
            with open(self._path, encoding="utf-8") as file:
                shipped = json.load(file)
            return EventSegments(writer, int(shipped["files"]), int(shipped["events"]))
        except (OSError, ValueError, KeyError):
            return None

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

    def _publish_events(self, store: Store) -> None:
        events = self._events
        if events is None:
            events = EventSegments(layout.coordinator_writer(self._attempt))
            events.count(store)  # An earlier process of the coordinator has published some.
            self._events = events
        published, first = events.files, self._status.earlier_events + events.events
        events.publish(store, self._status.events_after(first))
        if events.files != published:
            self._note(events)

    def _note(self, events: EventSegments) -> None:
        """Write down how much was published, for a restarted coordinator."""
        published = {"files": events.files, "events": events.events}
        try:
            replace_file(self._path, json.dumps(published).encode())
        except OSError:  # The disk is full: no number is better than an old one.
            with suppress(OSError):
                os.unlink(self._path)
