"""The interface that requests and releases containers, and the thread that calls it.

A placer may block for seconds, so the event loop never calls it. Changes of containers are posted
to the loop as events of the state machine: ``placed``, ``gone``, ``refused``.
"""

from __future__ import annotations

import queue
import random
import threading
import time
from abc import ABC, abstractmethod
from typing import Any, Callable

from submarine_runtime.backoff import Backoff
from submarine_runtime.protocol import Role

MAX_BACKOFF = 10.0
CLOSE_SECONDS = 10.0
#: Upper limit in seconds of a random delay; NodeManagers usually report once a second.
MAX_DELAY = 1.0


class PlacementError(Exception):
    """A request failed.

    Parameters
    ----------
    permanent
        The same request would always fail.
    """

    def __init__(self, message: str, permanent: bool = False) -> None:
        super().__init__(message)
        self.permanent = permanent


class Placer(ABC):
    """Interface to a source of containers. Each method makes one attempt, with a timeout.

    Attributes
    ----------
    interval
        Seconds between two polls while the state of a container is unknown.
    """

    interval = 1.0

    @abstractmethod
    def request(self, task: str, role: Role, seat: str) -> None:
        """Request a container for ``task`` as ``seat``, unless it was requested already.

        Raises
        ------
        PlacementError
            If the request failed.
        """

    @abstractmethod
    def release(self, seat: str) -> None:
        """Release the container of ``seat``, or cancel the request for it."""

    @abstractmethod
    def poll(self) -> list[dict[str, Any]]:
        """Return changes of the seats since the last poll, as events without ``t``."""

    @abstractmethod
    def close(self) -> None:
        """End everything that still runs, because the job is over."""

    @abstractmethod
    def terminate(self) -> None:
        """Signal the agents when the coordinator is stopped from outside; does not wait."""


class PlacementThread:
    """Call a placer in order, and poll it while the state of a container is unknown.

    Parameters
    ----------
    post
        Posts an event (without ``t``) to the event loop.
    uncertain
        Whether the state of a container is unknown.
    on_outage
        Called once for each outage, with a sentence.
    """

    def __init__(
        self,
        placer: Placer,
        post: Callable[[dict[str, Any]], None],
        uncertain: Callable[[], bool],
        on_outage: Callable[[str], None],
    ) -> None:
        self._placer = placer
        self._post, self._uncertain, self._on_outage = post, uncertain, on_outage
        self._queue: queue.Queue[Callable[[], None] | None] = queue.Queue()
        self._thread = threading.Thread(target=self._run, name="placement", daemon=True)
        self._released: set[str] = set()
        self._outage = False
        self._next_poll = 0.0
        self._stopping = False

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def request(self, task: str, role: Role, seat: str, delayed: bool = False) -> None:
        """Request a container; returns at once.

        Parameters
        ----------
        delayed
            Wait for a random time first, see ``machine.RequestContainer``.
        """
        request = lambda: self._request(task, role, seat)  # noqa: E731
        if not delayed:
            self._queue.put(request)
            return
        late = threading.Timer(random.uniform(0.0, MAX_DELAY), self._queue.put, (request,))  # noqa: S311
        late.daemon = True
        late.start()

    def release(self, seat: str) -> None:
        """Release a container; returns at once."""
        self._released.add(seat)
        self._queue.put(lambda: self._placer.release(seat))

    def stop(self) -> None:
        """End the thread, then everything that still runs; waits a limited time."""
        self._stopping = True
        self._queue.put(None)
        self._thread.join(CLOSE_SECONDS)
        self._placer.close()

    def _request(self, task: str, role: Role, seat: str) -> None:
        if seat in self._released:
            return
        try:
            self._placer.request(task, role, seat)
        except PlacementError as exc:
            if not exc.permanent:
                raise
            self._post({"type": "refused", "seat": seat, "detail": str(exc)})

    def _run(self) -> None:
        pending: Callable[[], None] | None = None
        backoff = Backoff(1.0, MAX_BACKOFF)
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
                self._poll_if_due()
                self._outage = False
                backoff.reset()
            except PlacementError as exc:
                if not self._outage:
                    self._on_outage(str(exc))
                self._outage = True
                time.sleep(backoff.pause())

    def _poll_if_due(self) -> None:
        now = time.monotonic()
        if now < self._next_poll or not self._uncertain():
            return
        self._next_poll = now + self._placer.interval
        for message in self._placer.poll():
            self._post(message)
