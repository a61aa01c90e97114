"""Cache the ResourceManager's responses on scheduler, nodes and applications for some seconds."""

from __future__ import annotations

import threading
import time
from typing import Any

from submarine_jobs.backends.yarn.cluster.resource_manager import ResourceManager
from submarine_runtime.yarn import (
    ACTIVE_STATES,
    FRESH,
    applications_of,
    applications_query,
    lifetime,
    nodes_of,
)

#: Seconds for which the cluster overview counts as displayed after a request for it.
VIEWED_SECONDS = 60.0
SCHEDULER, NODES, APPS = "scheduler", "nodes", "apps"


class ResponseCache:
    """Last responses on the scheduler, the nodes and the active applications of all users.

    Nodes and applications are lists of parsed objects. Long lists are requested more rarely.
    """

    def __init__(self, rm: ResourceManager) -> None:
        self._rm = rm
        self._lock = threading.Lock()
        #: Name -> time of the response, seconds for which it is reused, response.
        self._responses: dict[str, tuple[float, float, Any]] = {}
        self._viewed = float("-inf")

    def refresh(self, what: str) -> Any:
        """Request ``what`` now, and cache the response.

        Raises
        ------
        ClusterError
            If the ResourceManager does not answer.
        """
        seconds = FRESH
        if what == SCHEDULER:
            response = self._rm.get("/scheduler")
        elif what == NODES:
            response = nodes_of(self._rm.get("/nodes"))
            seconds = lifetime(response)
        else:
            query = applications_query(self.latest(SCHEDULER), ACTIVE_STATES)
            response = applications_of(self._rm.get("/apps", **query))
            seconds = max(seconds, lifetime(response))
        self._responses[what] = time.monotonic(), seconds, response
        return response

    def get(self, what: str, most: float = float("inf")) -> Any:
        """Return a response that is not old; concurrent callers share it.

        Parameters
        ----------
        most
            Maximum age in seconds, in addition.

        Raises
        ------
        ClusterError
            If the ResourceManager does not answer.
        """
        with self._lock:
            if self.is_old(what) or time.monotonic() - self._responses[what][0] >= most:
                return self.refresh(what)
            return self._responses[what][2]

    def latest(self, what: str) -> Any:
        """Return the last response, of any age; None before the first request."""
        return self._responses[what][2] if what in self._responses else None

    def is_old(self, what: str, times: int = 1) -> bool:
        """Return whether a response is missing, or older than ``times`` the time of its reuse."""
        then, seconds, _response = self._responses.get(what, (float("-inf"), 0.0, None))
        return time.monotonic() - then >= times * seconds

    def mark_viewed(self) -> None:
        """Note that the cluster overview is displayed now."""
        self._viewed = time.monotonic()

    @property
    def viewed(self) -> bool:
        """Whether the cluster overview was displayed recently."""
        return time.monotonic() - self._viewed < VIEWED_SECONDS
