"""Containers from YARN through skein's application master; every call has a timeout.

``add_container`` is remembered in a file of the working directory before anything else is done,
so that a restarted coordinator knows which container is whose.
"""

from __future__ import annotations

import os
import re
import time
from contextlib import suppress
from typing import Any

from submarine_runtime.coordinator.placement.placer import PlacementError, Placer
from submarine_runtime.coordinator.record import SEATS_FILE, Journal
from submarine_runtime.protocol.agent_config import (
    COORDINATOR_VARIABLE,
    SEAT_VARIABLE,
    TASK_VARIABLE,
)
from submarine_runtime.protocol.coordinator_config import CoordinatorConfig, RoleOrders
from submarine_runtime.protocol.reasons import EndReason
from submarine_runtime.yarn import application

CALL_SECONDS = 10.0
REST_SECONDS = 3.0
_OVER = ("SUCCEEDED", "FAILED", "KILLED")
_MEMORY = re.compile(r"([\d.]+ [KMGT]?B) of ([\d.]+ [KMGT]?B) physical memory used", re.IGNORECASE)


class YarnPlacer(Placer):
    """skein's services, one container at a time.

    Parameters
    ----------
    directory
        Working directory.
    address
        ``host:port`` of the coordinator.
    """

    interval = 1.0

    def __init__(self, config: CoordinatorConfig, directory: str, address: str) -> None:
        for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "grpc_proxy"):
            os.environ.pop(name, None)  # the master is never behind one
        import skein  # type: ignore[import-not-found,import-untyped,unused-ignore]
        from skein import proto

        self._config, self._address, self._proto = config, address, proto
        self._client = skein.ApplicationClient.from_current()
        self._seats: dict[str, str] = {}
        self._placed: set[str] = set()
        self._released: set[str] = set()
        self._preempted = 0
        self._kept = Journal(os.path.join(directory, SEATS_FILE))
        if not self._kept.fresh:
            self._seats = {str(e["seat"]): str(e["container"]) for e in self._kept.entries()}

    def request(self, task: str, role: RoleOrders, seat: str) -> None:
        """See ``Placer.request``."""
        if seat in self._seats:
            return
        words = {TASK_VARIABLE: task, SEAT_VARIABLE: seat, COORDINATOR_VARIABLE: self._address}
        request = self._proto.AddContainerRequest(service_name=role.service, env=words)
        answer = self._call("addContainer", request)
        name = f"{answer.service_name}_{answer.instance}"
        self._kept.append({"seat": seat, "container": name})
        self._seats[seat] = name

    def release(self, seat: str) -> None:
        """See ``Placer.release``."""
        name = self._seats.get(seat)
        self._released.add(seat)
        if name is None:
            return
        service, _, instance = name.rpartition("_")
        request = self._proto.ContainerInstance(service_name=service, instance=int(instance))
        with suppress(KeyError):
            self._call("killContainer", request)

    def look(self) -> list[dict[str, Any]]:
        """See ``Placer.look``."""
        states = ["WAITING", "REQUESTED", "RUNNING", *_OVER]
        answer = self._call("getContainers", self._proto.ContainersRequest(states=states))
        found = {f"{item.service_name}_{item.instance}": item for item in answer.containers}
        messages = []
        for seat, name in list(self._seats.items()):
            item = found.get(name)
            if item is None:
                continue
            state = self._proto.Container.State.Name(item.state)
            if state in _OVER:
                del self._seats[seat]
                messages.append({"type": "gone", "seat": seat, **self._ending(state, item)})
            elif state == "RUNNING" and seat not in self._placed:
                self._placed.add(seat)
                node = str(item.yarn_node_http_address)
                messages.append({"type": "placed", "seat": seat, "node": node})
        return messages

    def _ending(self, state: str, item: Any) -> dict[str, str]:
        said = str(item.exit_message or "").strip()
        if self._was_preempted(said):
            detail = "The scheduler took its container back for another queue."
            return {"reason": EndReason.PREEMPTED.value, "detail": detail}
        return ending_of(state, said)

    def _was_preempted(self, said: str) -> bool:
        """By YARN's words, or by its count: as many as that says beyond those already known."""
        named = "preempt" in said.lower()
        count = 0
        if self._config.resourcemanagers:
            app = application(self._config, REST_SECONDS)
            count = int(app.get("numNonAMContainerPreempted") or 0)
        preempted = named or count > self._preempted
        self._preempted += preempted
        return preempted

    def close(self) -> None:
        """See ``Placer.close``: the master takes its containers with it."""

    def terminate(self) -> None:
        """See ``Placer.terminate``: YARN tells them itself."""

    def _call(self, method: str, request: Any) -> Any:
        try:
            return self._client._call(method, request, timeout=CALL_SECONDS)
        except KeyError:
            raise
        except ValueError as exc:
            raise PlacementError(f"YARN refused: {exc}", lasting=True) from exc
        except Exception as exc:
            # grpc and skein have errors of their own; the master may be busy, or going away.
            time.sleep(0.1)
            sentence = f"the application master does not answer: {type(exc).__name__}: {exc}"
            raise PlacementError(sentence[:300]) from exc


def ending_of(state: str, said: str) -> dict[str, str]:
    """Why a container ended, by YARN's own words."""
    words = said.lower()
    detail = said[-500:] if said else f"YARN says {state} and nothing else."
    memory = _MEMORY.search(said)
    reason = EndReason.AGENT_LOST
    if memory or "beyond the 'physical' memory limit" in words or "beyond physical memory" in words:
        reason = EndReason.OUT_OF_MEMORY
        if memory:
            detail = f"The whole container used {memory.group(1)} of {memory.group(2)}."
    elif "released on a *lost* node" in words or "lost node" in words:
        reason, detail = EndReason.NODE_LOST, "Its node was lost."
    elif "localiz" in words or "filenotfound" in words:
        reason = EndReason.LOCALISATION_FAILED
    elif "invalid resource request" in words:
        reason = EndReason.NEVER_FITS
    elif state == "SUCCEEDED":
        detail = "Its container ended by itself."
    return {"reason": reason.value, "detail": detail}
