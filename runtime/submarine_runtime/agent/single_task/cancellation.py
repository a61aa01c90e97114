"""Why a job that is alone with its agent is to end early, and how long saving may then take.

Somebody wishes it, or its lease is over. Ends nothing itself: ``watching`` looks here.
"""

from __future__ import annotations

import time
from typing import Callable

from submarine_runtime.protocol.reasons import EndReason

#: Seconds that a cancel leaves for saving.
CANCELLED_GRACE = 10.0


class Cancelling:
    """The wish, once there is one.

    Parameters
    ----------
    on_asked
        Called once, by whichever thread has heard of it first.

    Attributes
    ----------
    asked
        ``by`` and ``why``; None while nobody has asked. Where nobody has and the job is to end all
        the same, ``reason`` says which end that is.
    deadline
        ``time.monotonic()`` at which nothing more is saved.
    """

    def __init__(self, on_asked: Callable[[dict[str, str]], None]) -> None:
        self._on_asked = on_asked
        self._grace = float("inf")
        self.asked: dict[str, str] | None = None
        self.deadline = float("inf")

    def hear(self, asked: dict[str, str]) -> None:
        """From any thread; only the first word counts."""
        self._take(asked, CANCELLED_GRACE)

    def expire(self, why: str) -> None:
        """The lease is over; nobody waits for the end, so that all may be saved."""
        self._take({"reason": EndReason.LEASE_EXPIRED.value, "why": why}, float("inf"))

    def patience(self, seconds: float) -> float:
        """How much of ``seconds`` saving may take."""
        return min(seconds, self._grace)

    def _take(self, asked: dict[str, str], grace: float) -> None:
        if self.asked is not None:
            return
        self.asked, self._grace = asked, grace
        self.deadline = min(self.deadline, time.monotonic() + grace)
        self._on_asked(asked)
