"""Attempts of the application: who is the n-th, what the earlier ones left, when they are over.

An earlier coordinator and its containers may live on where the cluster has lost sight of them. The
later attempt tells the old one to stand down and starts no program before the old ones have ended:
known from their node managers, or because their agents must have ended them by themselves.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Callable, Mapping
from urllib.parse import urlsplit

from submarine_runtime.coordinator.job_directory.publisher import CHECK_SECONDS
from submarine_runtime.coordinator.server import client_context
from submarine_runtime.protocol import layout, wire
from submarine_runtime.protocol.coordinator_config import CoordinatorConfig
from submarine_runtime.protocol.record import Event, event_json
from submarine_runtime.storage import (
    Store,
    StoreError,
    application_id,
    claimed_by_closer,
    container_id,
)

ANSWER_SECONDS = 3.0
MAX_EVENT_FILES = 100000
#: Bytes of the events of all earlier attempts together, and of one event.
MAX_EVENT_BYTES, MAX_EVENT = 64 << 20, 256 << 10
CLAIM_FILE = "claim.json"
#: A copy of ``Earlier``, so that a restarted coordinator need not ask the job directory.
EARLIER_FILE = "earlier.json"
_RUNNING = ("STARTING", "RUNNING", "FINISHING", "RESTARTING")


def application_attempt(environ: Mapping[str, str]) -> int:
    """2 from ``container_e01_1700000000000_0002_02_000001``; 1 outside YARN."""
    parts = (container_id(environ) or "").split("_")
    return int(parts[-2]) if len(parts) >= 5 and parts[-2].isdigit() else 1


def claim(store: Store, config: CoordinatorConfig, directory: str, attempt: int) -> bool:
    """Claim the job for this attempt; False when another container, or a later attempt, has it.

    Also False when the job has ended, or a client closes it.

    A restarted coordinator finds its own claim in its working directory. Makes one attempt.

    Raises
    ------
    StoreError
        If the job directory cannot be reached, or refuses.
    """
    path = os.path.join(directory, CLAIM_FILE)
    if not os.path.exists(path):
        content = {
            "intent": config.intent,
            "application_id": application_id(os.environ),
            "container_id": container_id(os.environ),
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "nonce": os.urandom(16).hex(),
            "time": time.time(),
        }
        with open(path + ".new", "w", encoding="utf-8") as file:
            json.dump(content, file, sort_keys=True)
        os.replace(path + ".new", path)
    with open(path, "rb") as claimed:
        data = claimed.read()
    name = layout.claim_name(attempt)
    if not store.publish_exclusive(name, data) or store.exists(layout.RECORD):
        return False
    if attempt > 1 and claimed_by_closer(store):
        return False
    return layout.newest_claim(entry.name for entry in store.entries("")) == attempt


@dataclass
class Earlier:
    """What earlier attempts of the application left in the job directory.

    Attributes
    ----------
    tasks
        Task -> its record as last told by an event.
    cut
        Runs of tasks that were under way when their application master was lost:
        ``worker:0/e1-a1``, each once, in the order of the attempts.
    """

    epoch: int = 0
    restarts: int = 0
    tasks: dict[str, dict[str, Any]] = field(default_factory=dict)
    logs: dict[str, int] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    cut: list[str] = field(default_factory=list)

    def take(self, line: bytes) -> None:
        """Take over one line of the event list."""
        try:
            event = Event.from_json(json.loads(line))
            data = event.data or {}
            self.events.append(event)
            self.epoch = max(self.epoch, int(data.get("epoch") or 0))
            self.restarts = max(self.restarts, int(data.get("restarts") or 0))
            task = data.get("task")
            if isinstance(task, dict):
                self.tasks[str(task.get("task"))] = task
                self.epoch = max(self.epoch, int(task.get("epoch") or 0))
            logs = data.get("logs")
            if isinstance(logs, dict):
                self.logs.update({str(key): int(value) for key, value in logs.items()})
        except (ValueError, AttributeError, TypeError, RecursionError):
            return  # a line of a newer writer

    def keep(self, directory: str) -> None:
        """Write a copy to the working directory; without one it is read from the store again."""
        content = {**vars(self), "events": [event_json(event) for event in self.events]}
        path = os.path.join(directory, EARLIER_FILE)
        with suppress(OSError):
            with open(path + ".new", "w", encoding="utf-8") as file:
                json.dump(content, file)
            os.replace(path + ".new", path)

    @classmethod
    def kept(cls, directory: str) -> Earlier | None:
        """The copy in the working directory; None where there is none that can be read."""
        try:
            with open(os.path.join(directory, EARLIER_FILE), encoding="utf-8") as file:
                content = json.load(file)
            content["events"] = [Event.from_json(event) for event in content["events"]]
            return cls(**content)
        except (OSError, ValueError, KeyError, TypeError):
            return None


def earlier(store: Store, attempt: int) -> Earlier:
    """Read the events of the attempts before ``attempt``."""
    found = Earlier()
    room = MAX_EVENT_BYTES
    for number in range(1, attempt):
        writer = layout.coordinator_writer(number)
        for segment in range(MAX_EVENT_FILES):
            data = store.read(layout.event_segment(writer, segment))
            if data is None or room < len(data):
                break
            room -= len(data)
            for line in data.splitlines():
                if len(line) <= MAX_EVENT:
                    found.take(line)
        runs = (run for run in map(_run_under_way, found.tasks.values()) if run)
        found.cut.extend(run for run in runs if run not in found.cut)
    return found


def _run_under_way(task: Mapping[str, Any]) -> str:
    """``worker:0/e1-a1`` of a task that was last told to run, else nothing."""
    if task.get("state") not in _RUNNING:
        return ""
    try:
        attempt = layout.attempt_name(int(task["epoch"]), int(task["attempt"]))
    except (KeyError, ValueError, TypeError):
        return ""
    return f"{task.get('task')}/{attempt}"


def stand_down(store: Store, secret: Mapping[str, str]) -> bool:
    """Tell the coordinator in ``live.json`` to stand down; whether it can do nothing any more."""
    try:
        live = json.loads(store.read(layout.LIVE) or b"{}")
        host, port = str(live["host"]), int(live["port"])
    except (StoreError, ValueError, KeyError, TypeError, RecursionError):
        return False
    connection = http.client.HTTPSConnection(
        host, port, timeout=ANSWER_SECONDS, context=client_context(secret)
    )
    try:
        headers = {"Authorization": "Bearer " + secret["token"]}
        connection.request("POST", wire.STAND_DOWN, body=b"{}", headers=headers)
        with connection.getresponse() as answer:
            return answer.status < 300
    except ConnectionRefusedError:
        return True  # its host answers, its port is closed: it is dead
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def fences(found: Earlier, config: CoordinatorConfig, answered: bool) -> dict[str, float]:
    """Container (or task) of an earlier attempt -> seconds until its program must have ended."""
    seconds = config.lost_after + config.lost_margin + (0.0 if answered else 2 * CHECK_SECONDS)
    return {
        "earlier:" + str(task.get("container_id") or name): seconds
        for name, task in found.tasks.items()
        if task.get("state") in _RUNNING
    }


def watch_containers(
    found: Earlier, keys: Mapping[str, float], tell: Callable[[dict[str, Any]], None]
) -> None:
    """Ask the node managers of ``keys`` until each container is known to be gone, or time is up."""
    waiting = {}
    for task in found.tasks.values():
        key = "earlier:" + str(task.get("container_id"))
        if key in keys and task.get("log_url"):
            waiting[key] = str(task["log_url"])
    deadline = time.monotonic() + max(keys.values(), default=0.0)
    while waiting and time.monotonic() < deadline:
        for key, log_url in list(waiting.items()):
            if container_is_gone(log_url):
                del waiting[key]
                tell({"type": "gone", "seat": key})
        time.sleep(0.5)


def container_is_gone(log_url: str) -> bool:
    """Whether a node manager says that a container of its runs no more."""
    parts = urlsplit(log_url)
    words = parts.path.strip("/").split("/")
    if len(words) < 3 or not parts.hostname:
        return False
    connection = http.client.HTTPConnection(parts.hostname, parts.port or 80, timeout=2.0)
    try:
        connection.request("GET", f"/ws/v1/node/containers/{words[2]}")
        with connection.getresponse() as answer:
            body = json.loads(answer.read(1 << 16) or b"{}")
        if answer.status == http.client.NOT_FOUND:
            return "NotFound" in str(body.get("RemoteException", {}).get("exception", ""))
        state = str((body.get("container") or {}).get("state"))
        return answer.status == http.client.OK and state in ("DONE", "COMPLETE")
    except (OSError, ValueError, AttributeError, RecursionError, http.client.HTTPException):
        return False
    finally:
        connection.close()
