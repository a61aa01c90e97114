"""Lines for the coordinator that must not be lost: kept until it has read them.

A line counts as read when a heartbeat that was sent after it is acknowledged. After a reconnection
all kept lines are sent again, and the last ``state`` line in any case. ``client`` sends the lines.
"""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from typing import Any, Callable, Mapping

from submarine_runtime.protocol import MAX_LINK_LINE, json_safe

#: Maximum number of lines kept during an outage; the oldest are dropped.
MAX_KEPT = 1000


class Outbox:
    """The lines, in order; callable from any thread."""

    def __init__(self) -> None:
        # The lock is entered, not the condition: SIGTERM, which is an exception in the main
        # thread, could arrive between acquire and the block, and leave the condition's lock held.
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._kept: deque[tuple[int, bytes]] = deque()
        self._count = self._taken = self._sent = 0
        self._state: tuple[int, bytes] | None = None
        self._over = False

    def add(self, line: Mapping[str, Any]) -> None:
        """Keep another line.

        Raises
        ------
        ValueError
            If it is too long for the link.
        """
        data = encoded(line)
        if len(data) > MAX_LINK_LINE:
            raise ValueError(f"a line of {len(data)} bytes is too long for the link")
        with self._lock:
            self._count += 1
            self._kept.append((self._count, data))
            if line.get("type") == "state":
                self._state = self._kept[-1]
            while len(self._kept) > MAX_KEPT:
                self._kept.popleft()

    def rewind(self) -> None:
        """Send all kept lines again, on a new connection."""
        with self._lock:
            self._taken = self._sent = 0
            state = self._state
            if state is not None and all(number != state[0] for number, _ in self._kept):
                self._kept.appendleft(state)

    def take(self) -> bytes:
        """Return the lines to send now."""
        with self._lock:
            new = [data for number, data in self._kept if number > self._taken]
            self._taken = self._count
        return b"".join(new)

    @property
    def taken(self) -> int:
        """Number of the last line that was taken."""
        return self._taken

    def sent(self) -> None:
        """Record that all taken lines have been sent."""
        if self._sent != self._taken:
            with self._lock:
                self._sent = self._taken
                self._changed.notify_all()

    def confirm(self, number: int) -> None:
        """Remove lines up to this number, which have been read."""
        if self._kept and self._kept[0][0] <= number:
            with self._lock:
                while self._kept and self._kept[0][0] <= number:
                    self._kept.popleft()
                self._changed.notify_all()

    def give_up(self) -> None:
        """Release all waiting threads: no further lines will be read."""
        with self._lock:
            self._over = True
            self._changed.notify_all()

    def wait_sent(self, seconds: float) -> bool:
        """Wait until all lines have been sent; return False after the timeout."""
        return self._wait(lambda: self._sent >= self._count, seconds)

    def wait_read(self, seconds: float) -> bool:
        """Wait until all lines have been read; return False after the timeout."""
        return self._wait(lambda: not self._kept, seconds)

    def _wait(self, done: Callable[[], bool], seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        with self._lock:
            while not done():
                left = deadline - time.monotonic()
                if left <= 0 or self._over:
                    return False
                self._changed.wait(left)
        return True


def encoded(line: Mapping[str, Any]) -> bytes:
    """Return one line of JSON."""
    return json.dumps(json_safe(dict(line)), separators=(",", ":")).encode() + b"\n"
