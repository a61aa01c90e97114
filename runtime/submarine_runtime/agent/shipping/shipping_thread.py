"""A thread that ships the logs of all attempts of a gang's task."""

from __future__ import annotations

from typing import Callable, Iterable

from submarine_runtime.agent.shipping.log_shipper import LogShipper
from submarine_runtime.storage import PublishingThread


class LogShippingThread(PublishingThread):
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

    @property
    def pending(self) -> bool:
        """Whether a log that no longer grows is not shipped to its end."""
        return bool(self._ended)

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
