"""Query the ResourceManager for the reason of missing containers.

A thread sends up to three requests every ``INTERVAL`` seconds while containers have been missing
for ``PATIENCE`` seconds; it reuses long lists for a minute. If the ResourceManager does not answer,
the sentence is missing.
"""

from __future__ import annotations

import threading
import time
from typing import Any, Callable, Sequence

from submarine_runtime.coordinator.machine import JobState, Stage
from submarine_runtime.kerberos import resourcemanager_access
from submarine_runtime.protocol import CoordinatorConfig
from submarine_runtime.yarn import (
    ClusterAnswers,
    ContainerRequest,
    ResourceManagerClient,
    applications_of,
    applications_query,
    explain_pending,
    lifetime,
    nodes_of,
)

PATIENCE = 2.0
INTERVAL = 10.0
TIMEOUT = 5.0
_STATES = ("ACCEPTED", "RUNNING")


def missing_containers(job: JobState) -> list[ContainerRequest]:
    """Return the containers for which a job waits."""
    tasks = list(job.tasks.values())
    waiting = [t.role.name for t in tasks if t.stage is Stage.REQUESTED and not t.localizing]
    return [
        ContainerRequest(
            waiting.count(role.name),
            role.resources.memory,
            role.resources.vcores,
            role.resources.gpus,
            label=role.node_label or "",
            nodes=() if role.relax else role.nodes,
            racks=() if role.relax else role.racks,
        )
        for role in job.config.spec.roles
        if role.name in waiting
    ]


class PendingReasonThread(threading.Thread):
    """Thread that keeps a sentence on why containers are missing.

    Parameters
    ----------
    missing
        Returns the missing containers; called from this thread.
    show
        Receives the sentence, empty if nothing is known or missing; called from this thread.
    """

    def __init__(
        self,
        config: CoordinatorConfig,
        application_id: str,
        missing: Callable[[], Sequence[ContainerRequest]],
        show: Callable[[str], None],
    ) -> None:
        super().__init__(name="why-pending", daemon=True)
        self._config, self._id = config, application_id
        self._missing, self._show = missing, show
        self._ended = threading.Event()
        #: Name -> when the list is requested again, and the list.
        self._lists: dict[str, tuple[float, list[Any]]] = {}
        access = resourcemanager_access(config.store)
        self._client = ResourceManagerClient(
            config.resourcemanagers, access=access, timeout=TIMEOUT
        )

    def stop(self) -> None:
        """End the thread; an answer under way is ignored."""
        self._ended.set()

    def run(self) -> None:
        """Query the ResourceManager until ``stop``."""
        since: float | None = None
        queried = float("-inf")
        while not self._ended.wait(1.0) and self._config.resourcemanagers:
            requests, now = self._missing(), time.monotonic()
            if not requests:
                if since is not None:
                    self._show("")
                since, queried = None, float("-inf")
                continue
            since = now if since is None else since
            if now - since >= PATIENCE and now - queried >= INTERVAL:
                sentence = self.query(requests)
                queried = time.monotonic()
                if not self._ended.is_set():
                    self._show(sentence)

    def query(self, requests: Sequence[ContainerRequest]) -> str:
        """Return the sentence; empty if the ResourceManager does not answer."""
        scheduler = self._client.query("/scheduler")
        if scheduler is None:
            return ""
        nodes = self._list("nodes", nodes_of)
        apps = self._list("apps", applications_of, **applications_query(scheduler, _STATES))
        if nodes is None or apps is None:
            return ""
        record = self._config.record
        return explain_pending(
            requests,
            record.queue or "default",
            ClusterAnswers(scheduler, nodes, known=apps),
            user=record.user,
            application_id=self._id,
        )

    def _list(self, what: str, parse: Callable[[Any], list[Any]], **query: str) -> list[Any] | None:
        """Return a list, requested again if it is too old; None if there is no answer."""
        now = time.monotonic()
        until, found = self._lists.get(what, (now, []))
        if now < until:
            return found
        answer = self._client.query(f"/{what}", **query)
        if answer is None:
            return None
        found = parse(answer)
        self._lists[what] = now + lifetime(found), found
        return found
