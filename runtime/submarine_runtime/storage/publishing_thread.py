"""A thread that publishes to the job directory in rounds, and retries during an outage.

Nothing waits for it: data that cannot be published stays in files on the node's disk and is
published later.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from typing import Callable

from submarine_runtime.backoff import Backoff
from submarine_runtime.storage.store import StoreError

MAX_BACKOFF = 10.0
#: Largest pause after an error that waiting does not cure, such as a full quota.
MAX_BACKOFF_PERMANENT = 60.0


class PublishingThread(ABC):
    """Base class: a thread that calls ``_round`` regularly, and less often after an error.

    Parameters
    ----------
    on_outage
        Called once for each outage with the sentence of the error.

    Attributes
    ----------
    interval
        Seconds between two rounds.
    outage
        Why nothing can be published now; empty if publishing works.
    """

    interval = 1.0

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
        pause, backoff = self.interval, Backoff(2 * self.interval, MAX_BACKOFF_PERMANENT)
        while True:
            self._wake.wait(pause)
            self._wake.clear()
            if self._stopping:
                return
            try:
                self._round()
                pause, self.outage = self.interval, ""
                backoff.reset()
            except (StoreError, OSError) as exc:
                if not self.outage:
                    self._on_outage(str(exc))
                self.outage = str(exc) or type(exc).__name__
                permanent = isinstance(exc, StoreError) and not exc.transient
                pause = backoff.pause(None if permanent else MAX_BACKOFF)

    @abstractmethod
    def _round(self) -> None:
        """Publish what is due.

        Raises
        ------
        StoreError, OSError
            If the job directory or a local file cannot be used; the thread retries later.
        """
