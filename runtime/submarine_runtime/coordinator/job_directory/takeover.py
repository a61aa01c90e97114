"""Take a job over from earlier attempts of the application: claim, events, running containers.

An earlier coordinator and its containers may still run after the cluster has lost them. The later
attempt requests the earlier coordinator to stop. It starts no program before the earlier programs
have ended: their NodeManagers report that, or their agents have ended them after ``lost_after``.
"""

from __future__ import annotations

import http.client
import json
import os
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Callable, Mapping

from submarine_runtime.coordinator.job_directory.publisher import CHECK_SECONDS
from submarine_runtime.files import replace_file
from submarine_runtime.network import client_context, port_request
from submarine_runtime.protocol import CoordinatorConfig, Event, from_json, layout, to_json, wire
from submarine_runtime.storage import (
    Store,
    StoreError,
    claimed_by_closer,
    container_id,
    new_claim,
)
from submarine_runtime.yarn import container_has_ended

ANSWER_SECONDS = 3.0
MAX_EVENT_FILES = 100000
#: Bytes of the events of all earlier attempts together, and of one event.
MAX_EVENT_BYTES, MAX_EVENT = 64 << 20, 256 << 10
CLAIM_FILE = "claim.json"
#: A copy of ``EarlierAttempts`` for a restarted coordinator.
EARLIER_FILE = "earlier.json"
_RUNNING = ("STARTING", "RUNNING", "FINISHING", "RESTARTING")


def application_attempt(environ: Mapping[str, str]) -> int:
    """Return 2 from ``container_e01_1700000000000_0002_02_000001``; 1 outside YARN."""
    parts = (container_id(environ) or "").split("_")
    return int(parts[-2]) if len(parts) >= 5 and parts[-2].isdigit() else 1


def claim_job(store: Store, config: CoordinatorConfig, directory: str, attempt: int) -> bool:
    """Claim the job for this attempt; False if another container or a later attempt has it.

    Also False when the job has ended, or a client closes it.

    A restarted coordinator finds its own claim in its working directory. This function does not
    repeat failed calls.

    Parameters
    ----------
    directory
        Working directory of the coordinator.
    attempt
        Number of the application's attempt.

    Raises
    ------
    StoreError
        If the job directory is unavailable or refuses the claim.
    """
    path = os.path.join(directory, CLAIM_FILE)
    if not os.path.exists(path):
        replace_file(path, new_claim(config.intent, os.environ))
    with open(path, "rb") as claimed:
        data = claimed.read()
    name = layout.claim_name(attempt)
    if not store.publish_exclusive(name, data) or store.exists(layout.RECORD):
        return False
    if attempt > 1 and claimed_by_closer(store):
        return False
    return layout.newest_claim(entry.name for entry in store.entries("")) == attempt


@dataclass
class EarlierAttempts:
    """What earlier attempts of the application left in the job directory.

    Attributes
    ----------
    tasks
        Task -> its record in its last event.
    interrupted
        Runs of tasks that were under way when their application master was lost:
        ``worker:0/e1-a1``, each once, in the order of the attempts.
    """

    epoch: int = 0
    restarts: int = 0
    tasks: dict[str, dict[str, Any]] = field(default_factory=dict)
    logs: dict[str, int] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    interrupted: list[str] = field(default_factory=list)

    def add_line(self, line: bytes) -> None:
        """Add an event from a line of an event file."""
        try:
            event = from_json(Event, json.loads(line))
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
            return  # A line of a newer version.

    def save(self, directory: str) -> None:
        """Write a copy to the working directory; errors are ignored."""
        content = {**vars(self), "events": [to_json(event) for event in self.events]}
        with suppress(OSError):
            replace_file(os.path.join(directory, EARLIER_FILE), json.dumps(content).encode())

    @classmethod
    def load(cls, directory: str) -> EarlierAttempts | None:
        """Return the copy in the working directory; None if there is no readable one."""
        try:
            with open(os.path.join(directory, EARLIER_FILE), encoding="utf-8") as file:
                content = json.load(file)
            content["events"] = [from_json(Event, event) for event in content["events"]]
            return cls(**content)
        except (OSError, ValueError, KeyError, TypeError):
            return None


def read_earlier_attempts(store: Store, attempt: int) -> EarlierAttempts:
    """Read the events of the attempts before ``attempt``."""
    found = EarlierAttempts()
    bytes_left = MAX_EVENT_BYTES
    for number in range(1, attempt):
        writer = layout.coordinator_writer(number)
        for segment in range(MAX_EVENT_FILES):
            data = store.read(layout.event_segment(writer, segment))
            if data is None or bytes_left < len(data):
                break
            bytes_left -= len(data)
            for line in data.splitlines():
                if len(line) <= MAX_EVENT:
                    found.add_line(line)
        runs = (run for run in map(_run_under_way, found.tasks.values()) if run)
        found.interrupted.extend(run for run in runs if run not in found.interrupted)
    return found


def _run_under_way(task: Mapping[str, Any]) -> str:
    """Return ``worker:0/e1-a1`` of a task that runs according to its last event, else nothing."""
    if task.get("state") not in _RUNNING:
        return ""
    try:
        attempt = layout.attempt_name(int(task["epoch"]), int(task["attempt"]))
    except (KeyError, ValueError, TypeError):
        return ""
    return f"{task.get('task')}/{attempt}"


def stop_earlier_coordinator(store: Store, secret: Mapping[str, str]) -> bool:
    """Request the coordinator in ``live.json`` to stop; return whether it certainly has."""
    try:
        live = json.loads(store.read(layout.LIVE) or b"{}")
        host, port = str(live["host"]), int(live["port"])
    except (StoreError, ValueError, KeyError, TypeError, RecursionError):
        return False
    context = client_context(secret["certificate"])
    connection = http.client.HTTPSConnection(host, port, timeout=ANSWER_SECONDS, context=context)
    try:
        return (
            port_request(connection, secret["token"], "POST", wire.STAND_DOWN, b"{}").status < 300
        )
    except ConnectionRefusedError:
        return True  # Its host answers and its port is closed: it has ended.
    except (OSError, http.client.HTTPException):
        return False


def earlier_fences(
    found: EarlierAttempts, config: CoordinatorConfig, stopped: bool
) -> dict[str, float]:
    """Return container (or task) of an earlier attempt -> seconds until its program has ended.

    Parameters
    ----------
    stopped
        Whether the earlier coordinator is known to be stopped.
    """
    seconds = config.lost_after + config.lost_margin + (0.0 if stopped else 2 * CHECK_SECONDS)
    return {
        "earlier:" + str(task.get("container_id") or name): seconds
        for name, task in found.tasks.items()
        if task.get("state") in _RUNNING
    }


def watch_earlier_containers(
    found: EarlierAttempts,
    keys: Mapping[str, float],
    post: Callable[[dict[str, Any]], None],
    config: CoordinatorConfig,
) -> None:
    """Ask YARN for the containers of ``keys`` until each has ended, or a timeout."""
    waiting = {}
    for task in found.tasks.values():
        key = "earlier:" + str(task.get("container_id"))
        if key in keys and task.get("log_url"):
            waiting[key] = str(task["log_url"])
    deadline = time.monotonic() + max(keys.values(), default=0.0)
    while waiting and time.monotonic() < deadline:
        for key, log_url in list(waiting.items()):
            if container_has_ended(log_url, config):
                del waiting[key]
                post({"type": "gone", "seat": key})
        time.sleep(0.5)
