"""Cache the ResourceManager's responses on scheduler, nodes and applications for some seconds."""

from __future__ import annotations

import threading
import time
from typing import Any

from submarine_jobs.backends.yarn.cluster.resource_manager import ResourceManager
from submarine_runtime.yarn import ACTIVE_STATES

#: Maximum age of a cached response in seconds.
FRESH = 10.0
#: Seconds for which the cluster overview counts as displayed after a request for it.
VIEWED_SECONDS = 60.0
SCHEDULER, NODES, APPS = "scheduler", "nodes", "apps"
#: Requests and time-outs are long, and the resources in use are listed without them.
_PARAMETERS = {APPS: {"states": ",".join(ACTIVE_STATES), "deSelects": "resourceRequests,timeouts"}}


class ResponseCache:
    """Last responses on the scheduler, the nodes and the active applications of all users."""

    def __init__(self, rm: ResourceManager) -> None:
        self._rm = rm
        self._lock = threading.Lock()
        self._responses: dict[str, tuple[float, Any]] = {}
        self._viewed = float("-inf")

    def refresh(self, what: str) -> Any:
        """Request ``what`` now, and cache the response.

        Raises
        ------
        ClusterError
            If the ResourceManager does not answer.
        """
        response = self._rm.get(f"/{what}", **_PARAMETERS.get(what, {}))
        self._responses[what] = time.monotonic(), response
        return response

    def get(self, what: str) -> Any:
        """Return a response that is at most ``FRESH`` seconds old; concurrent callers share it.

        Raises
        ------
        ClusterError
            If the ResourceManager does not answer.
        """
        with self._lock:
            return self._responses[what][1] if self.age(what) < FRESH else self.refresh(what)

    def latest(self, what: str) -> Any:
        """Return the last response, of any age; None before the first request."""
        return self._responses[what][1] if what in self._responses else None

    def age(self, what: str) -> float:
        """Return the age of the last response in seconds; infinite before the first request."""
        return (
            time.monotonic() - self._responses[what][0] if what in self._responses else float("inf")
        )

    def mark_viewed(self) -> None:
        """Note that the cluster overview is displayed now."""
        self._viewed = time.monotonic()

    @property
    def viewed(self) -> bool:
        """Whether the cluster overview was displayed recently."""
        return time.monotonic() - self._viewed < VIEWED_SECONDS
