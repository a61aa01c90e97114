"""Renew the ticket of the user's cache while this process runs, from one thread."""

from __future__ import annotations

import logging
import threading
import time

from submarine_jobs.backends.yarn.cluster.ticket_cache import cached_ticket, renew_ticket
from submarine_runtime.kerberos import GssError

log = logging.getLogger(__name__)

#: Seconds between two looks at the cache, at most: `submarine login` may have replaced the ticket.
#: A look takes a millisecond.
_LONGEST_PAUSE = 300.0
#: Seconds between two attempts, at least.
_SHORTEST_PAUSE = 2.0
#: A ticket is renewed when less than this part of its lifetime remains.
_PART = 0.5
#: Attempts in the remaining lifetime, if the KDC does not answer.
_ATTEMPTS = 10


class TicketRenewal:
    """Renews the ticket of the user's own cache.

    A ticket that is not renewable, or whose renewable lifetime is over, is left as it is. Several
    processes may renew it at about the same time; a process that comes later finds a new ticket.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        #: End of the ticket of which a failure has been reported.
        self._reported = 0.0

    def start(self) -> None:
        """Renew the ticket from now on; further calls have no effect."""
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="ticket", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while True:
            time.sleep(self.step())

    def step(self) -> float:
        """Renew the ticket if little of its life remains; return seconds until the next step."""
        ticket = cached_ticket()
        if ticket is None or not ticket.can_be_renewed:
            return _LONGEST_PAUSE
        left = ticket.end - time.time()
        due = left - (ticket.end - ticket.start) * _PART
        if due <= 0:
            try:
                renew_ticket()
            except GssError as exc:
                level = logging.INFO if ticket.end == self._reported else logging.WARNING
                log.log(
                    level,
                    "the ticket of %s, which ends in %d s, was not renewed: %s",
                    ticket.principal, left, exc,
                )  # fmt: skip
                self._reported = ticket.end
            due = left / _ATTEMPTS
        return min(max(due, _SHORTEST_PAUSE), _LONGEST_PAUSE)


#: The renewal of this process.
RENEWAL = TicketRenewal()
