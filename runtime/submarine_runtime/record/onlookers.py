"""Clients that display the TensorBoard files of a task; they repeat their request.

While there are any, new pieces of the files are shipped more often (``syncing``).
"""

from __future__ import annotations

import time
from typing import Callable

#: Seconds for which one request is valid; the clients repeat it.
HOLDS = 60.0


class Onlookers:
    """The clients of one task.

    Attributes
    ----------
    wake
        Called, in any thread, when the first client begins.
    """

    def __init__(self) -> None:
        self._until = float("-inf")
        self.wake: Callable[[], None] = lambda: None

    @property
    def present(self) -> bool:
        """Whether there was a request within ``HOLDS`` seconds."""
        return time.monotonic() < self._until

    def note(self) -> None:
        """Record a request."""
        begins = not self.present
        self._until = time.monotonic() + HOLDS
        if begins:
            self.wake()
