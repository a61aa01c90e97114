"""Containers that are processes of this machine: one directory and one agent a seat.

A coordinator that was killed finds them again by what is written in their directories.
"""

from __future__ import annotations

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
from submarine_runtime.coordinator.supervision import start_time
from submarine_runtime.protocol.agent_config import (
    COORDINATOR_VARIABLE,
    SEAT_VARIABLE,
    TASK_VARIABLE,
)
from submarine_runtime.protocol.coordinator_config import RoleOrders

SEAT_FILE = "seat.json"
#: Seconds that agents have to go once the job is over, before they are killed.
FAREWELL = 1.0


class LocalPlacer(Placer):
    """Processes below ``<directory>/tasks``.

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
        self._alive: dict[str, tuple[int, str]] = {}
        self._told: set[str] = set()
        self._find()

    def _path(self, seat: str) -> str:
        return os.path.join(self._directory, "tasks", seat)

    def _find(self) -> None:
        """Seats that an earlier coordinator has filled."""
        tasks = os.path.join(self._directory, "tasks")
        for seat in os.listdir(tasks) if os.path.isdir(tasks) else []:
            with suppress(OSError, ValueError, KeyError, TypeError):
                with open(os.path.join(tasks, seat, SEAT_FILE), encoding="utf-8") as file:
                    found = json.load(file)
                self._alive[seat] = (int(found["pid"]), str(found["started"]))
                self._told.add(seat)

    def request(self, task: str, role: RoleOrders, seat: str) -> None:
        """See ``Placer.request``."""
        if seat in self._alive:
            return
        path = self._path(seat)
        try:
            shutil.rmtree(path, ignore_errors=True)
            copy_files(os.path.join(self._directory, role.service), path)
            self._start(task, seat, path)
        except OSError as exc:
            lasting = isinstance(exc, FileNotFoundError)
            raise PlacementError(f"{task} cannot be started here: {exc}", lasting) from exc

    def _start(self, task: str, seat: str, path: str) -> None:
        words = {TASK_VARIABLE: task, SEAT_VARIABLE: seat, COORDINATOR_VARIABLE: self._address}
        with open(os.path.join(path, "agent.log"), "ab") as log:
            child = subprocess.Popen(
                [sys.executable, "-I", self._runtime, "agent", "--directory", path],
                cwd=path,
                env={**os.environ, **words},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        started = start_time(child.pid) or ""
        self._children[seat], self._alive[seat] = child, (child.pid, started)
        with open(os.path.join(path, SEAT_FILE), "w", encoding="utf-8") as file:
            json.dump({"pid": child.pid, "started": started, "task": task}, file)

    def release(self, seat: str) -> None:
        """See ``Placer.release``."""
        self._signal(seat, signal.SIGKILL)

    def look(self) -> list[dict[str, Any]]:
        """See ``Placer.look``."""
        messages: list[dict[str, Any]] = []
        for seat, (pid, started) in list(self._alive.items()):
            if seat not in self._told:
                self._told.add(seat)
                messages.append({"type": "placed", "seat": seat, "node": ""})
            child = self._children.get(seat)
            code = child.poll() if child is not None else None
            if code is None and (child is not None or start_time(pid) == started):
                continue
            del self._alive[seat]
            messages.append({"type": "gone", "seat": seat, **_ending(code)})
        return messages

    def close(self) -> None:
        """See ``Placer.close``."""
        deadline = time.monotonic() + FAREWELL
        while self._alive and time.monotonic() < deadline:
            self.look()
            time.sleep(0.02)
        for seat in list(self._alive):
            self._signal(seat, signal.SIGKILL)

    def terminate(self) -> None:
        """Tell every agent that it is over; does not wait."""
        for seat in list(self._alive):
            self._signal(seat, signal.SIGTERM)

    def _signal(self, seat: str, number: int) -> None:
        pid, started = self._alive.get(seat, (0, ""))
        if pid and start_time(pid) == started:
            with suppress(ProcessLookupError):
                os.kill(pid, number)


def _ending(code: int | None) -> Mapping[str, str]:
    if code is not None and code < 0:
        name = signal.Signals(-code).name
        return {"reason": "agent_lost", "detail": f"Its agent was ended by {name}."}
    said = "" if code is None else f" with exit code {code}"
    return {"reason": "agent_lost", "detail": f"Its agent ended{said}."}


def copy_files(source: str, target: str) -> None:
    """A role's files in a directory of its own: links where possible, secrets stay 0600."""
    os.makedirs(target, mode=0o700)
    for name in os.listdir(source):
        path, there = os.path.join(source, name), os.path.join(target, name)
        if os.path.isdir(path):
            shutil.copytree(path, there, symlinks=True)
            continue
        try:
            os.link(os.path.realpath(path), there)
        except OSError:
            shutil.copy2(path, there)
