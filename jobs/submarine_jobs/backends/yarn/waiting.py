"""Why applications wait, in one sentence each: a few questions for all of them together, seldom.

The judgement is ``submarine_runtime.coordinator.pending``'s, which the coordinator of a distributed
job uses as well. Nothing is asked while nothing waits.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

from submarine_jobs.backends.yarn.rm import ResourceManager
from submarine_jobs.errors import ClusterError, RefusedError
from submarine_runtime.coordinator.capacity import Size, size
from submarine_runtime.coordinator.pending import Need, explain

#: Seconds for which an answer about the whole cluster is good enough.
FRESH = 10.0
_ACTIVE = "ACCEPTED,RUNNING"
#: So many applications are asked for what they still request, by their tags.
_MOST = 40


class Waits:
    """Explains waits on one cluster.

    Parameters
    ----------
    user
        Who acts there: limits of a user are this one's.
    """

    def __init__(self, rm: ResourceManager, user: str) -> None:
        self._rm, self._user = rm, user
        self._lock = threading.Lock()
        self._answers: dict[str, Any] = {}
        self._asked = float("-inf")
        self._scheduler: tuple[float, Any] = (float("-inf"), None)

    def take_scheduler(self, answer: Any) -> None:
        """Take what the ResourceManager has just said of the scheduler, to save the question."""
        with self._lock:
            self._scheduler = time.monotonic(), answer
            if self._answers:
                self._answers = {**self._answers, "scheduler": answer}

    def scheduler(self) -> Any:
        """What the ResourceManager says of the scheduler, at most ``FRESH`` seconds old.

        Raises
        ------
        ClusterError
            If it does not answer.
        """
        with self._lock:
            return self._fresh_scheduler()

    def _fresh_scheduler(self) -> Any:
        said, answer = self._scheduler
        if time.monotonic() - said >= FRESH:
            answer = self._rm.get("/scheduler")
            self._scheduler = time.monotonic(), answer
        return answer

    def sentences(self, waiting: Sequence[Mapping[str, Any]]) -> dict[str, str]:
        """Application id -> why it waits; only those of which that is known.

        Parameters
        ----------
        waiting
            Applications as the ResourceManager lists them.
        """
        if not waiting:
            return {}
        try:
            answers, requests = self.cluster(), self._requests(waiting[:_MOST])
        except (ClusterError, RefusedError):
            return {}
        found = {}
        for app in waiting[:_MOST]:
            identity = str(app.get("id"))
            queue = str(app.get("queue") or "")
            needs = requests.get(identity, [])
            found[identity] = self._explain(needs, queue, identity, answers)
        return {identity: sentence for identity, sentence in found.items() if sentence}

    def would_wait(self, needs: Sequence[Need], queue: str) -> str:
        """Why containers of this size would not be there at once; empty if they would.

        Raises
        ------
        ClusterError
            If the ResourceManager does not answer.
        """
        return self._explain(needs, queue, "", self.cluster())

    def cluster(self) -> dict[str, Any]:
        """What ``explain`` needs of the cluster, at most ``FRESH`` seconds old."""
        with self._lock:
            if time.monotonic() - self._asked >= FRESH:
                self._answers = {
                    "scheduler": self._fresh_scheduler(),
                    "nodes": self._rm.get("/nodes"),
                    "apps": self._rm.get(
                        "/apps", states=_ACTIVE, deSelects="resourceRequests,timeouts"
                    ),
                }
                self._asked = time.monotonic()
            return self._answers

    def _requests(self, waiting: Sequence[Mapping[str, Any]]) -> dict[str, list[Need]]:
        """Application id -> what it still asks for."""
        tags = [tag for app in waiting if (tag := _own_tag(app))]
        if not tags:
            return {}
        answer = self._rm.get("/apps", states=_ACTIVE, applicationTags=",".join(tags))
        apps = ((answer or {}).get("apps") or {}).get("app") or []
        return {str(app.get("id")): needs_of(app) for app in apps}

    def _explain(
        self, needs: Sequence[Need], queue: str, identity: str, answers: Mapping[str, Any]
    ) -> str:
        try:
            return explain(
                needs, queue, user=self._user, application_id=identity, guess=False, **answers
            )
        except (TypeError, ValueError, AttributeError, KeyError):
            return ""  # an answer of another form than any that we know


def needs_of(app: Mapping[str, Any]) -> list[Need]:
    """What an application still asks for, one entry a size."""
    raw = app.get("resourceRequests") or []
    entries = [raw] if isinstance(raw, Mapping) else [one for one in raw if one]
    counted: dict[tuple[Size, str], int] = {}
    for entry in entries:
        if entry.get("resourceName") == "*":
            kind = size(entry.get("capability")), str(entry.get("nodeLabelExpression") or "")
            counted[kind] = counted.get(kind, 0) + int(entry.get("numContainers") or 0)
    master = app.get("state") == "ACCEPTED"
    return [
        Need(count, each.memory, each.vcores, each.gpus, label=label, master=master)
        for (each, label), count in counted.items()
    ]


def _own_tag(app: Mapping[str, Any]) -> str:
    tags = str(app.get("applicationTags") or "").split(",")
    return next((tag for tag in tags if tag.startswith("submarine_job:")), "")
