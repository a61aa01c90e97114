"""Orders that the coordinator has given and nobody has carried out yet, in order.

Also knows whether there will be any more. Carries nothing out itself.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Callable

#: A coordinator gives a handful; more is a fault of its.
MAX_ORDERS = 256
#: Orders that end a program that runs.
ENDING = frozenset({"stop", "leave"})
Order = "dict[str, Any]"


class Orders:
    """The queue; filled by the link's thread, emptied by the main one."""

    def __init__(self, wake: Callable[[], None], wait: Callable[[float], object]) -> None:
        self._queue: deque[dict[str, Any]] = deque(maxlen=MAX_ORDERS)
        self._wake = wake
        self._wait = wait
        #: Nobody will give an order any more.
        self.over = False
        self.welcomed = False

    def give(self, order: dict[str, Any]) -> None:
        """An order has come."""
        if order.get("type") == "welcome":
            self.welcomed = True
        else:
            self._queue.append(order)
        self._wake()

    def finish(self) -> None:
        """There will be no more."""
        self.over = True
        self._wake()

    def first(self) -> dict[str, Any] | None:
        """The next order, which stays; None when there is none."""
        return self._queue[0] if self._queue and not self.over else None

    def take(self) -> dict[str, Any] | None:
        """The next order, which is gone from here; None when there is none."""
        return self._queue.popleft() if self._queue and not self.over else None

    def next(self) -> dict[str, Any] | None:
        """Wait for the next order; None when there will be none."""
        while not self.over:
            order = self.take()
            if order is not None:
                return order
            self._wait(60.0)
        return None

    def wait_welcome(self) -> bool:
        """Wait until the coordinator has welcomed us; False when it never will."""
        while not self.welcomed and not self.over:
            self._wait(60.0)
        return self.welcomed and not self.over

    @property
    def must_end(self) -> bool:
        """Whether what runs now is to end: told so, or told nothing any more."""
        return self.over or any(order.get("type") in ENDING for order in list(self._queue))
