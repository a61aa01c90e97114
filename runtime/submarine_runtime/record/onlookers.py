"""Whether somebody looks at the TensorBoard files of a task right now; they say so again and again.

While somebody does, new pieces of the files are shipped more often (``syncing``).
"""

from __future__ import annotations

import time
from typing import Callable

#: Seconds for which one word holds; whoever looks repeats it.
HOLDS = 60.0


class Onlookers:
    """Those who look at one task.

    Attributes
    ----------
    wake
        Called, from any thread, when somebody has begun to look.
    """

    def __init__(self) -> None:
        self._until = float("-inf")
        self.wake: Callable[[], None] = lambda: None

    @property
    def present(self) -> bool:
        """Whether somebody has said so within ``HOLDS`` seconds."""
        return time.monotonic() < self._until

    def note(self) -> None:
        """Somebody looks."""
        begins = not self.present
        self._until = time.monotonic() + HOLDS
        if begins:
            self.wake()
