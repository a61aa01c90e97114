"""Requests to end a single-task job early, and the time for saving after them.

A request is a cancel by a user, or an expired lease. ``watching`` ends the program.
"""

from __future__ import annotations

import time
from typing import Callable

from submarine_runtime.protocol.reasons import EndReason

#: Seconds for saving after a cancel.
CANCELLED_GRACE = 10.0


class Cancelling:
    """The first request to end the job.

    Parameters
    ----------
    on_asked
        Called once, in the thread that receives the request.

    Attributes
    ----------
    asked
        ``by`` and ``why``; None without a request. For an expired lease ``reason`` is the end
        reason.
    deadline
        ``time.monotonic()`` after which nothing is saved.
    """

    def __init__(self, on_asked: Callable[[dict[str, str]], None]) -> None:
        self._on_asked = on_asked
        self._grace = float("inf")
        self.asked: dict[str, str] | None = None
        self.deadline = float("inf")

    def hear(self, asked: dict[str, str]) -> None:
        """Cancel the job, from any thread; only the first request counts."""
        self._take(asked, CANCELLED_GRACE)

    def expire(self, why: str) -> None:
        """End the job because its lease has expired; saving is not limited further."""
        self._take({"reason": EndReason.LEASE_EXPIRED.value, "why": why}, float("inf"))

    def patience(self, seconds: float) -> float:
        """Return the part of ``seconds`` that saving may use."""
        return min(seconds, self._grace)

    def _take(self, asked: dict[str, str], grace: float) -> None:
        if self.asked is not None:
            return
        self.asked, self._grace = asked, grace
        self.deadline = min(self.deadline, time.monotonic() + grace)
        self._on_asked(asked)
