"""Query the ResourceManager for the reason of missing containers.

A thread sends three requests every ``INTERVAL`` seconds while containers have been missing for
``PATIENCE`` seconds. If the ResourceManager does not answer, the sentence is missing.
"""

from __future__ import annotations

import threading
import time
from typing import Callable, Sequence

from submarine_runtime.coordinator.machine import JobState, Stage
from submarine_runtime.kerberos import resourcemanager_access
from submarine_runtime.protocol import CoordinatorConfig
from submarine_runtime.yarn import (
    MAX_CLUSTER_BYTES,
    ClusterAnswers,
    ContainerRequest,
    ResourceManagerClient,
    explain_pending,
)

PATIENCE = 2.0
INTERVAL = 10.0
TIMEOUT = 5.0
#: Query for applications; their resource requests and timeouts are long and not needed.
_APPS = {"states": "ACCEPTED,RUNNING", "deSelects": "resourceRequests,timeouts"}


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
        answers = []
        for what, query in (("scheduler", {}), ("nodes", {}), ("apps", _APPS)):
            answer = self._client.query(f"/{what}", MAX_CLUSTER_BYTES, **query)
            if answer is None:
                return ""
            answers.append(answer)
        scheduler, nodes, apps = answers
        record = self._config.record
        return explain_pending(
            requests,
            record.queue or "default",
            ClusterAnswers(scheduler, nodes, apps),
            user=record.user,
            application_id=self._id,
        )
