"""Queue of the coordinator's orders that are not executed yet.

The queue is closed when the coordinator will send no further orders.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Callable

#: Limit of the queue: a coordinator sends few orders; more are an error.
MAX_ORDERS = 256
#: Orders that end a program that runs.
ENDING = frozenset({"stop", "leave"})
Order = "dict[str, Any]"


class Orders:
    """The queue; filled by the link's thread, emptied by the main thread."""

    def __init__(self, wake: Callable[[], None], wait: Callable[[float], object]) -> None:
        self._queue: deque[dict[str, Any]] = deque(maxlen=MAX_ORDERS)
        self._wake = wake
        self._wait = wait
        #: There will be no further orders.
        self.over = False
        self.welcomed = False

    def add(self, order: dict[str, Any]) -> None:
        """Add an order."""
        if order.get("type") == "welcome":
            self.welcomed = True
        else:
            self._queue.append(order)
        self._wake()

    def close(self) -> None:
        """Close the queue."""
        self.over = True
        self._wake()

    def peek(self) -> dict[str, Any] | None:
        """Return the next order without removing it; None if there is none."""
        return self._queue[0] if self._queue and not self.over else None

    def pop(self) -> dict[str, Any] | None:
        """Remove and return the next order; None if there is none."""
        return self._queue.popleft() if self._queue and not self.over else None

    def get(self) -> dict[str, Any] | None:
        """Wait for the next order; return None if there will be none."""
        while not self.over:
            order = self.pop()
            if order is not None:
                return order
            self._wait(60.0)
        return None

    def wait_welcome(self) -> bool:
        """Wait until the coordinator has accepted the agent; return False if it never will."""
        while not self.welcomed and not self.over:
            self._wait(60.0)
        return self.welcomed and not self.over

    @property
    def must_end(self) -> bool:
        """Whether the program is to end: by an order, or because there will be no further ones."""
        return self.over or any(order.get("type") in ENDING for order in list(self._queue))
