"""Query the ResourceManager for the reason of missing containers.

A thread sends three requests every ``INTERVAL`` seconds while containers have been missing for
``PATIENCE`` seconds. If the ResourceManager does not answer, the sentence is missing.
"""

from __future__ import annotations

import json
import threading
import time
from typing import Any, Callable, Sequence
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import ProxyHandler, build_opener

from submarine_runtime.coordinator.machine import JobState, Stage
from submarine_runtime.protocol import CoordinatorConfig
from submarine_runtime.yarn import ContainerRequest, explain_pending

PATIENCE = 2.0
INTERVAL = 10.0
TIMEOUT = 5.0
MAX_ANSWER = 32 << 20
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
        self._active = 0

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
        config = self._config
        try:
            return explain_pending(
                requests,
                config.record.queue or "default",
                scheduler=self._get("scheduler", {}),
                nodes=self._get("nodes", {}),
                apps=self._get("apps", _APPS),
                user=config.record.user,
                application_id=self._id,
            )
        except (OSError, ValueError, TypeError, AttributeError, KeyError, RecursionError):
            return ""

    def _get(self, what: str, query: dict[str, str]) -> Any:
        """Return one answer of the active ResourceManager."""
        urls = self._config.resourcemanagers
        parameters = urlencode({**query, "user.name": self._config.record.user})
        failure: Exception = ValueError("no ResourceManager answers with JSON")
        for _ in urls:
            url = f"{urls[self._active % len(urls)].rstrip('/')}/ws/v1/cluster/{what}?{parameters}"
            try:
                return _fetch(url)
            except (OSError, ValueError) as exc:  # Down, or the standby, which sends no JSON.
                failure = exc
                self._active += 1
        raise failure


def _fetch(url: str) -> Any:
    # A ResourceManager is never behind a proxy.
    opener = build_opener(ProxyHandler({}))
    with opener.open(url, timeout=TIMEOUT) as reply:
        data = reply.read(MAX_ANSWER + 1)
    if len(data) > MAX_ANSWER:
        raise URLError("the answer is too long")
    return json.loads(data)
