"""Somebody's wish to cancel a job that is alone with its agent, and how long saving may then take.

Ends nothing itself: ``watching`` looks here.
"""

from __future__ import annotations

import time
from typing import Callable

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
        ``by`` and ``why``; None while nobody has asked.
    deadline
        ``time.monotonic()`` at which nothing more is saved.
    """

    def __init__(self, on_asked: Callable[[dict[str, str]], None]) -> None:
        self._on_asked = on_asked
        self.asked: dict[str, str] | None = None
        self.deadline = float("inf")

    def hear(self, asked: dict[str, str]) -> None:
        """From any thread; only the first word counts."""
        if self.asked is not None:
            return
        self.asked = asked
        self.deadline = min(self.deadline, time.monotonic() + CANCELLED_GRACE)
        self._on_asked(asked)
