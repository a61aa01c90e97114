"""Place tasks as processes of this machine: one directory and one agent for each seat.

A restarted coordinator finds them by the files in their directories.
"""

from __future__ import annotations

import glob
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from typing import Any, Mapping

from submarine_runtime.coordinator.placement.placer import PlacementError, Placer
from submarine_runtime.processes import ProcessIdentity
from submarine_runtime.protocol import (
    COORDINATOR_VARIABLE,
    SEAT_VARIABLE,
    TASK_VARIABLE,
    Role,
    layout,
)
from submarine_runtime.translation import _

SEAT_FILE = "seat.json"
#: Seconds that agents have to leave after the end of the job, before they are killed.
LEAVE_SECONDS = 1.0


class LocalPlacer(Placer):
    """Places tasks as processes below ``<directory>/tasks``.

    Parameters
    ----------
    directory
        The job's scratch directory; ``<directory>/<service>/`` holds a role's files.
    runtime
        Path of the runtime's zip.
    address
        ``host:port`` of the coordinator.
    """

    interval = 0.2

    def __init__(self, directory: str, runtime: str, address: str) -> None:
        self._directory, self._runtime, self._address = directory, runtime, address
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._alive: dict[str, ProcessIdentity | None] = {}
        self._reported: set[str] = set()
        self._load_seats()

    def _path(self, seat: str) -> str:
        return os.path.join(self._directory, "tasks", seat)

    def _load_seats(self) -> None:
        """Load the seats of an earlier coordinator process."""
        tasks = os.path.join(self._directory, "tasks")
        for seat in os.listdir(tasks) if os.path.isdir(tasks) else []:
            with suppress(OSError, ValueError, KeyError, TypeError):
                with open(os.path.join(tasks, seat, SEAT_FILE), encoding="utf-8") as file:
                    found = json.load(file)
                self._alive[seat] = ProcessIdentity.parse(f"{found['pid']}:{found['started']}")
                self._reported.add(seat)

    def request(self, task: str, role: Role, seat: str) -> None:
        """See ``Placer.request``."""
        if seat in self._alive:
            return
        path = self._path(seat)
        try:
            shutil.rmtree(path, ignore_errors=True)
            copy_files(os.path.join(self._directory, role.name), path)
            self._start(task, seat, path)
        except OSError as exc:
            permanent = isinstance(exc, FileNotFoundError)
            raise PlacementError(
                _("{task} cannot be started here: {error}").format(task=task, error=exc), permanent
            ) from exc

    def _start(self, task: str, seat: str, path: str) -> None:
        variables = {TASK_VARIABLE: task, SEAT_VARIABLE: seat, COORDINATOR_VARIABLE: self._address}
        with open(os.path.join(path, "agent.log"), "ab") as log:
            child = subprocess.Popen(
                [sys.executable, "-I", self._runtime, "agent", "--directory", path],
                cwd=path,
                env={**os.environ, **variables},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        # A child that has ended already is not identified; its exit code is read.
        agent = ProcessIdentity.of(child.pid)
        self._children[seat], self._alive[seat] = child, agent
        started = agent.started if agent is not None else ""
        with open(os.path.join(path, SEAT_FILE), "w", encoding="utf-8") as file:
            json.dump({"pid": child.pid, "started": started, "task": task}, file)

    def release(self, seat: str) -> None:
        """See ``Placer.release``."""
        self._signal(seat, signal.SIGKILL)

    def poll(self) -> list[dict[str, Any]]:
        """See ``Placer.poll``."""
        events: list[dict[str, Any]] = []
        for seat, agent in list(self._alive.items()):
            if seat not in self._reported:
                self._reported.add(seat)
                events.append({"type": "placed", "seat": seat, "node": ""})
            child = self._children.get(seat)
            code = child.poll() if child is not None else None
            if code is None and (child is not None or (agent is not None and agent.alive)):
                continue
            del self._alive[seat]
            events.append({"type": "gone", "seat": seat, **_ending(code)})
        return events

    def close(self) -> None:
        """See ``Placer.close``."""
        deadline = time.monotonic() + LEAVE_SECONDS
        while self._alive and time.monotonic() < deadline:
            self.poll()
            time.sleep(0.02)
        for seat in list(self._alive):
            self._signal(seat, signal.SIGKILL)
        # No agent is started any more, and it may take long until a client removes the directory.
        root = glob.escape(self._directory)
        for above in ("*", os.path.join("tasks", "*")):
            for path in glob.glob(os.path.join(root, above, layout.SECRET_ENV)):
                with suppress(OSError):
                    os.unlink(path)

    def terminate(self) -> None:
        """See ``Placer.terminate``."""
        for seat in list(self._alive):
            self._signal(seat, signal.SIGTERM)

    def _signal(self, seat: str, number: int) -> None:
        agent = self._alive.get(seat)
        if agent is not None:
            agent.signal(number)


def _ending(code: int | None) -> Mapping[str, str]:
    if code is not None and code < 0:
        name = signal.Signals(-code).name
        return {
            "reason": "agent_lost",
            "detail": _("Its agent was ended by {name}.").format(name=name),
        }
    suffix = "" if code is None else _(" with exit code {code}").format(code=code)
    return {"reason": "agent_lost", "detail": _("Its agent ended{suffix}.").format(suffix=suffix)}


def copy_files(source: str, target: str) -> None:
    """Copy a role's files to a new directory, as hard links if possible; file modes are kept."""
    os.makedirs(target, mode=0o700)
    for name in os.listdir(source):
        path, destination = os.path.join(source, name), os.path.join(target, name)
        if os.path.isdir(path):
            shutil.copytree(path, destination, symlinks=True)
            continue
        try:
            os.link(os.path.realpath(path), destination)
        except OSError:
            shutil.copy2(path, destination)
