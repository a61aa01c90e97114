"""A thread that ships live address, events and log segments to the job directory.

``single_task.finalization`` saves outputs and the record.
"""

from __future__ import annotations

import time
from typing import Callable

from submarine_runtime.agent.shipping.log_shipper import LARGEST_SEGMENT, LogShipper, log_shippers
from submarine_runtime.protocol import layout
from submarine_runtime.record import EventSegments, live_address
from submarine_runtime.storage import PublishingThread, Store, StoreError, cancel_request

__all__ = ["LARGEST_SEGMENT", "LogShipper", "Publisher", "log_shippers"]

CANCEL_CHECK = 10.0


class Publisher(PublishingThread):
    """Thread that ships the logs and events of a single-task job.

    Parameters
    ----------
    logs
        The shipper of each stream.
    events_after
        Returns the events from a number on, as plain JSON.
    on_cancel
        Called when ``cancel.json`` has appeared.
    on_outage
        Called once for each outage with the sentence of the error.
    """

    def __init__(
        self,
        store: Store,
        logs: dict[str, LogShipper],
        events_after: Callable[[int], list[dict[str, object]]],
        on_cancel: Callable[[dict[str, str]], None],
        on_outage: Callable[[str], None],
    ) -> None:
        super().__init__(on_outage)
        self._store = store
        self._logs = logs
        self._events_after = events_after
        self._on_cancel = on_cancel
        self._others: list[LogShipper] = []
        self._live: bytes | None = None
        self._events = EventSegments("agent")
        self._events_due = False
        self._cancel_checked: float | None = None

    def add(self, log: LogShipper) -> None:
        """Ship another log."""
        self._others.append(log)

    def announce(self, host: str, port: int) -> None:
        """Publish the address at which the agent listens."""
        self._live = live_address(host, port)
        self._wake.set()

    def ship_events_soon(self) -> None:
        """Ship the events soon, after an important change of state."""
        self._events_due = True
        self._wake.set()

    def _round(self) -> None:
        self._store.gate()  # Check right after a suspend, also if nothing is to be shipped.
        if self._live is not None:
            live = self._live
            self._store.publish(layout.LIVE, live)
            self._live = None
            self._check_cancel()
        logs = [*self._logs.values(), *self._others]
        for log in logs:
            log.note()
        due = [log for log in logs if log.due()]
        if self._events_due or due:
            self._events_due = False
            try:
                self._events.publish(self._store, self._events_after(self._events.events))
            except StoreError:
                self._events_due = True
                raise
        for log in logs:
            log.advance()
        if due:
            self._check_cancel()

    def _check_cancel(self) -> None:
        """Check for ``cancel.json``, which clients without access to the port write."""
        now = time.monotonic()
        if self._cancel_checked is not None and now - self._cancel_checked < CANCEL_CHECK:
            return
        self._cancel_checked = now
        request = cancel_request(self._store)
        if request is not None:
            self._on_cancel(request)
