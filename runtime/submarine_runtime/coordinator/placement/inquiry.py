"""Asks the ResourceManager why containers are missing, in a thread of its own and seldom.

Three questions every ``INTERVAL`` seconds, only while something has waited for ``PATIENCE``. No
answer costs nothing but the sentence: the job goes on.
"""

from __future__ import annotations

import json
import threading
import time
from typing import Any, Callable, Sequence
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import ProxyHandler, build_opener

from submarine_runtime.coordinator.machine import Play, Stage
from submarine_runtime.protocol.coordinator_config import CoordinatorConfig
from submarine_runtime.yarn import Need, explain

PATIENCE = 2.0
INTERVAL = 10.0
TIMEOUT = 5.0
MAX_ANSWER = 32 << 20
#: What applications are asked for; their requests and time-outs are long and say nothing here.
_APPS = {"states": "ACCEPTED,RUNNING", "deSelects": "resourceRequests,timeouts"}


def needs_of(play: Play) -> list[Need]:
    """The containers that a job waits for at present."""
    tasks = list(play.tasks.values())
    waiting = [t.orders.name for t in tasks if t.stage is Stage.ASKED and not t.localizing]
    return [
        Need(
            waiting.count(role.name),
            role.memory,
            role.vcores,
            role.gpus,
            label=role.label or "",
            nodes=tuple(role.nodes),
            racks=tuple(role.racks),
        )
        for role in play.config.roles
        if role.name in waiting
    ]


class Inquiry(threading.Thread):
    """Keeps one sentence on why a job waits.

    Parameters
    ----------
    needs
        What is waited for at present; called from this thread.
    answer
        Gets the sentence, empty where nothing is known or needed; called from this thread.
    """

    def __init__(
        self,
        config: CoordinatorConfig,
        application_id: str,
        needs: Callable[[], Sequence[Need]],
        answer: Callable[[str], None],
    ) -> None:
        super().__init__(name="why-pending", daemon=True)
        self._config, self._id = config, application_id
        self._needs, self._answer = needs, answer
        self._ended = threading.Event()
        self._active = 0

    def stop(self) -> None:
        """Ask no more; an answer under way is thrown away."""
        self._ended.set()

    def run(self) -> None:
        """Until ``stop``."""
        since: float | None = None
        asked = float("-inf")
        while not self._ended.wait(1.0) and self._config.resourcemanagers:
            needs, now = self._needs(), time.monotonic()
            if not needs:
                if since is not None:
                    self._answer("")
                since, asked = None, float("-inf")
                continue
            since = now if since is None else since
            if now - since >= PATIENCE and now - asked >= INTERVAL:
                sentence = self.ask(needs)
                asked = time.monotonic()
                if not self._ended.is_set():
                    self._answer(sentence)

    def ask(self, needs: Sequence[Need]) -> str:
        """Ask now; empty if the ResourceManager does not answer."""
        config = self._config
        try:
            return explain(
                needs,
                config.queue or "default",
                scheduler=self._get("scheduler", {}),
                nodes=self._get("nodes", {}),
                apps=self._get("apps", _APPS),
                user=config.user,
                application_id=self._id,
            )
        except (OSError, ValueError, TypeError, AttributeError, KeyError, RecursionError):
            return ""

    def _get(self, what: str, query: dict[str, str]) -> Any:
        """One answer of the active ResourceManager."""
        urls = self._config.resourcemanagers
        words = urlencode({**query, "user.name": self._config.user})
        failure: Exception = ValueError("no ResourceManager answers with JSON")
        for _ in urls:
            url = f"{urls[self._active % len(urls)].rstrip('/')}/ws/v1/cluster/{what}?{words}"
            try:
                return _fetch(url)
            except (OSError, ValueError) as exc:  # down, or the standby, which writes no JSON
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
