"""Where containers come from: one small interface, and the thread that talks to it.

A placer may block for seconds in a call; the coordinator's own thread never waits for it. What a
placer finds out comes back as messages of ``machine``: ``placed``, ``gone``, ``refused``.
"""

from __future__ import annotations

import queue
import random
import threading
import time
from abc import ABC, abstractmethod
from typing import Any, Callable

from submarine_runtime.protocol.coordinator_config import RoleOrders

LONGEST_BACKOFF = 10.0
CLOSE_SECONDS = 10.0
#: Node managers report once a second, mostly.
ELSEWHERE_SECONDS = 1.0


class PlacementError(Exception):
    """A request did not get through.

    Parameters
    ----------
    lasting
        The same request would never get through.
    """

    def __init__(self, message: str, lasting: bool = False) -> None:
        super().__init__(message)
        self.lasting = lasting


class Placer(ABC):
    """A place that has containers. Each method makes one attempt, with a timeout of its own.

    Attributes
    ----------
    interval
        Seconds between two looks while anything is uncertain.
    """

    interval = 1.0

    @abstractmethod
    def request(self, task: str, role: RoleOrders, seat: str) -> None:
        """Ask for a container for ``task`` as ``seat``; nothing if that was asked before.

        Raises
        ------
        PlacementError
            If that did not get through.
        """

    @abstractmethod
    def release(self, seat: str) -> None:
        """Take the container of ``seat``, or the request for it, away; nothing if there is none."""

    @abstractmethod
    def look(self) -> list[dict[str, Any]]:
        """What has become of the seats since the last look, as messages without ``t``."""

    @abstractmethod
    def close(self) -> None:
        """The job is over: whatever still runs may go."""

    @abstractmethod
    def terminate(self) -> None:
        """Somebody ends us from outside: tell whoever would not notice; does not wait."""


class PlacementThread:
    """Does what a placer is asked for, in order, and looks while that is needed.

    Parameters
    ----------
    tell
        Called from the thread with messages (without ``t``).
    uncertain
        Whether any seat's fate is uncertain, so that a look is worth its cost.
    trouble
        Called once an outage with a sentence.
    """

    def __init__(
        self,
        placer: Placer,
        tell: Callable[[dict[str, Any]], None],
        uncertain: Callable[[], bool],
        trouble: Callable[[str], None],
    ) -> None:
        self._placer = placer
        self._tell, self._uncertain, self._trouble = tell, uncertain, trouble
        self._queue: queue.Queue[Callable[[], None] | None] = queue.Queue()
        self._thread = threading.Thread(target=self._run, name="placement", daemon=True)
        self._released: set[str] = set()
        self._in_trouble = False
        self._next_look = 0.0
        self._stopping = False

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def request(self, task: str, role: RoleOrders, seat: str, elsewhere: bool = False) -> None:
        """Ask for a container; returns at once.

        Parameters
        ----------
        elsewhere
            Ask a moment later, at random: see ``actions.Ask``.
        """
        wish = lambda: self._request(task, role, seat)  # noqa: E731
        if not elsewhere:
            self._queue.put(wish)
            return
        late = threading.Timer(random.uniform(0.0, ELSEWHERE_SECONDS), self._queue.put, (wish,))  # noqa: S311
        late.daemon = True
        late.start()

    def release(self, seat: str) -> None:
        """Take one away; returns at once."""
        self._released.add(seat)
        self._queue.put(lambda: self._placer.release(seat))

    def stop(self) -> None:
        """End the thread, then everything that still runs; bounded."""
        self._stopping = True
        self._queue.put(None)
        self._thread.join(CLOSE_SECONDS)
        self._placer.close()

    def _request(self, task: str, role: RoleOrders, seat: str) -> None:
        if seat in self._released:
            return
        try:
            self._placer.request(task, role, seat)
        except PlacementError as exc:
            if not exc.lasting:
                raise
            self._tell({"type": "refused", "seat": seat, "detail": str(exc)})

    def _run(self) -> None:
        pending: Callable[[], None] | None = None
        pause = 0.5
        while not self._stopping:
            if pending is None:
                try:
                    pending = self._queue.get(timeout=self._placer.interval)
                except queue.Empty:
                    pass
            try:
                if pending is not None:
                    pending()
                    pending = None
                self._look()
                pause, self._in_trouble = 0.5, False
            except PlacementError as exc:
                if not self._in_trouble:
                    self._trouble(str(exc))
                self._in_trouble = True
                time.sleep(pause)
                pause = min(LONGEST_BACKOFF, pause * 2)

    def _look(self) -> None:
        now = time.monotonic()
        if now < self._next_look or not self._uncertain():
            return
        self._next_look = now + self._placer.interval
        for message in self._placer.look():
            self._tell(message)
