"""A thread that ships to the job directory in rounds, and retries during an outage.

The program never waits for it: data that cannot be shipped stays in files on the node's disk and is
shipped later. Subclasses define the rounds (``publisher``, and the logs of all attempts of a task).
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from typing import Callable, Iterable

from submarine_runtime.agent.shipping.log_shipper import LogShipper
from submarine_runtime.backoff import Backoff
from submarine_runtime.storage import StoreError

TICK = 1.0
LONGEST_BACKOFF = 10.0


class ShippingThread(ABC):
    """Base class: a thread that calls ``_round`` every second, and less often after an error.

    Parameters
    ----------
    on_outage
        Called once for each outage with the sentence of the error.

    Attributes
    ----------
    outage
        Why nothing can be shipped now; empty if shipping works.
    """

    def __init__(self, on_outage: Callable[[str], None]) -> None:
        self._on_outage = on_outage
        self.outage = ""
        self._wake = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="shipping", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self, timeout: float) -> bool:
        """End the thread; return False if it hangs in a call for longer than ``timeout``."""
        self._stopping = True
        self._wake.set()
        if self._thread.ident is not None:
            self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        pause, backoff = TICK, Backoff(2 * TICK, 6 * LONGEST_BACKOFF)
        while True:
            self._wake.wait(pause)
            self._wake.clear()
            if self._stopping:
                return
            try:
                self._round()
                pause, self.outage = TICK, ""
                backoff.reset()
            except (StoreError, OSError) as exc:
                if not self.outage:
                    self._on_outage(str(exc))
                self.outage = str(exc) or type(exc).__name__
                lasting = isinstance(exc, StoreError) and not exc.transient
                pause = backoff.pause(None if lasting else LONGEST_BACKOFF)

    @abstractmethod
    def _round(self) -> None:
        """Ship what is due.

        Raises
        ------
        StoreError, OSError
            If the job directory or a local file cannot be used; the thread retries later.
        """


class LogShippingThread(ShippingThread):
    """Ships the logs of one attempt after the other, each to its end.

    Parameters
    ----------
    on_rest
        Called in the thread when the end of a log has been shipped.
    """

    def __init__(
        self, on_outage: Callable[[str], None], on_rest: Callable[[], None] = lambda: None
    ) -> None:
        super().__init__(on_outage)
        self._on_rest = on_rest
        self._growing: list[LogShipper] = []
        self._ended: list[LogShipper] = []

    def begin(self, logs: Iterable[LogShipper]) -> None:
        """Add logs that grow from now on."""
        self._growing.extend(logs)
        if self._thread.ident is None:
            self.start()

    def end(self, logs: Iterable[LogShipper]) -> None:
        """Ship the rest of logs that no longer grow."""
        for log in logs:
            if log in self._growing:
                log.note()
                self._growing.remove(log)
                self._ended.append(log)
        self._wake.set()

    def rest(self) -> list[LogShipper]:
        """Return the logs that are not shipped to their end; the caller does it after ``stop``."""
        return [*self._ended, *self._growing]

    def _round(self) -> None:
        for log in list(self._growing):
            log.note()
            log.advance()
        for log in list(self._ended):
            log.ship_rest()
            self._ended.remove(log)
            self._on_rest()
