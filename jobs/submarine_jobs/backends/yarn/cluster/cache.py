"""What the ResourceManager said last of the cluster as a whole, for all that need it soon after.

Asks only where nobody has just done so, and gives the answers no meaning.
"""

from __future__ import annotations

import threading
import time
from typing import Any

from submarine_jobs.backends.yarn.cluster.resource_manager import ResourceManager

#: Seconds for which an answer about the whole cluster is good enough.
FRESH = 10.0
#: Seconds for which somebody who looked at the cluster is taken to look still.
LOOKED_AT = 60.0
GOING_ON = "NEW,NEW_SAVING,SUBMITTED,ACCEPTED,RUNNING"
SCHEDULER, NODES, APPS = "scheduler", "nodes", "apps"
#: Requests and time-outs are long, and who holds what is said without them.
_WORDS = {APPS: {"states": GOING_ON, "deSelects": "resourceRequests,timeouts"}}


class Answers:
    """The answers: of the scheduler, of the nodes, of everybody's applications that go on."""

    def __init__(self, rm: ResourceManager) -> None:
        self._rm = rm
        self._lock = threading.Lock()
        self._said: dict[str, tuple[float, Any]] = {}
        self._looked = float("-inf")

    def renew(self, what: str) -> Any:
        """Ask now.

        Raises
        ------
        ClusterError
            If the ResourceManager does not answer.
        """
        answer = self._rm.get(f"/{what}", **_WORDS.get(what, {}))
        self._said[what] = time.monotonic(), answer
        return answer

    def ask(self, what: str) -> Any:
        """What was said at most ``FRESH`` seconds ago; asked for once by all that want it.

        Raises
        ------
        ClusterError
            If the ResourceManager does not answer.
        """
        with self._lock:
            return self._said[what][1] if self.age(what) < FRESH else self.renew(what)

    def last(self, what: str) -> Any:
        """What was said last, however old; None before the first time."""
        return self._said[what][1] if what in self._said else None

    def age(self, what: str) -> float:
        """How many seconds ago that was; infinite before the first time."""
        return time.monotonic() - self._said[what][0] if what in self._said else float("inf")

    def look(self) -> None:
        """Somebody looks at the cluster."""
        self._looked = time.monotonic()

    @property
    def looked_at(self) -> bool:
        """Whether somebody did so lately."""
        return time.monotonic() - self._looked < LOOKED_AT
