"""Place tasks in YARN containers through skein's application master; every call has a timeout.

Each new container is written to a file of the working directory, so that a restarted coordinator
knows the container of each seat.
"""

from __future__ import annotations

import os
import re
import time
from contextlib import suppress
from typing import Any, Sequence

from submarine_runtime.coordinator.placement.image_failure import NOT_ALLOWED, image_failure
from submarine_runtime.coordinator.placement.placer import PlacementError, Placer
from submarine_runtime.coordinator.record import SEATS_FILE, Journal
from submarine_runtime.protocol import (
    COORDINATOR_VARIABLE,
    SEAT_VARIABLE,
    TASK_VARIABLE,
    CoordinatorConfig,
    EndReason,
    Role,
)
from submarine_runtime.translation import _
from submarine_runtime.yarn import application, import_skein, printable

CALL_SECONDS = 10.0
REST_SECONDS = 3.0
#: Bytes of an answer of the master: it has YARN's text, of some kB, on each container that ended.
MAX_ANSWER = 256 << 20
_LIVE = ("WAITING", "REQUESTED", "RUNNING")
_OVER = ("SUCCEEDED", "FAILED", "KILLED")
#: What follows in YARN's text is of the container's own files: it is never a reason.
_FILES = re.compile(r"\bLast \d+ bytes of ")
_ADDED = re.compile(r"^(?:\[\d{4}-|Last \d+ bytes of )")
MAX_LINE = 200
#: In YARN's text on a container whose process ended; the end of its stderr follows.
_EXITED = re.compile(r"exit code(?: is|:)? ([1-9]\d*)\b", re.IGNORECASE)
_MEMORY = re.compile(r"([\d.]+ [KMGT]?B) of ([\d.]+ [KMGT]?B) physical memory used", re.IGNORECASE)


class YarnPlacer(Placer):
    """Requests containers as instances of skein's services.

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
            os.environ.pop(name, None)  # The master is never behind a proxy.
        skein = import_skein()
        self._config, self._address, self._proto = config, address, skein.proto
        self._client = _master_of(skein)
        self._seats: dict[str, str] = {}
        self._placed: set[str] = set()
        self._preempted = 0
        self._journal = Journal(os.path.join(directory, SEATS_FILE))
        if not self._journal.is_new:
            self._seats = {str(e["seat"]): str(e["container"]) for e in self._journal.entries()}

    def request(self, task: str, role: Role, seat: str) -> None:
        """See ``Placer.request``."""
        if seat in self._seats:
            return
        variables = {TASK_VARIABLE: task, SEAT_VARIABLE: seat, COORDINATOR_VARIABLE: self._address}
        request = self._proto.AddContainerRequest(service_name=role.name, env=variables)
        answer = self._call("addContainer", request)
        name = f"{answer.service_name}_{answer.instance}"
        self._journal.append({"seat": seat, "container": name})
        self._seats[seat] = name

    def release(self, seat: str) -> None:
        """See ``Placer.release``."""
        name = self._seats.get(seat)
        if name is None:
            return
        service, _, instance = name.rpartition("_")
        request = self._proto.ContainerInstance(service_name=service, instance=int(instance))
        with suppress(KeyError):
            self._call("killContainer", request)

    def poll(self) -> list[dict[str, Any]]:
        """See ``Placer.poll``."""
        found = self._containers(_LIVE)
        if not found.keys() >= set(self._seats.values()):
            found.update(self._containers(_OVER))
        events = []
        for seat, name in list(self._seats.items()):
            item = found.get(name)
            if item is None:
                continue
            state = self._proto.Container.State.Name(item.state)
            if state in _OVER:
                del self._seats[seat]
                events.append({"type": "gone", "seat": seat, **self._ending(state, item)})
            elif state == "RUNNING" and seat not in self._placed:
                self._placed.add(seat)
                node = str(item.yarn_node_http_address)
                events.append({"type": "placed", "seat": seat, "node": node})
        return events

    def _containers(self, states: Sequence[str]) -> dict[str, Any]:
        answer = self._call("getContainers", self._proto.ContainersRequest(states=states))
        return {f"{item.service_name}_{item.instance}": item for item in answer.containers}

    def _ending(self, state: str, item: Any) -> dict[str, Any]:
        message = str(item.exit_message or "").strip()
        if self._was_preempted(message):
            detail = _("The scheduler preempted its container.")
            return {"reason": EndReason.PREEMPTED.value, "detail": detail}
        ending: dict[str, Any] = {**ending_of(state, message)}
        if state == "FAILED" and ending["reason"] == EndReason.AGENT_LOST.value:
            roles = (role for role in self._config.spec.roles if role.name == item.service_name)
            image = next(map(self._config.spec.image_of, roles), "")
            # A container that YARN rejects for its runtime has no text at all.
            text = reason_in(message) if message else NOT_ALLOWED
            detail = image_failure(image, text) if image else ""
            if detail:
                reason = EndReason.LAUNCH_FAILED.value
                ending = {"reason": reason, "detail": detail, "retry": False}
        return ending

    def _was_preempted(self, message: str) -> bool:
        """Whether YARN's message or a higher count of preempted containers shows a preemption."""
        named = "preempt" in message.lower() and not _EXITED.search(message)
        count = 0
        if self._config.resourcemanagers:
            count = application(self._config, REST_SECONDS).preempted_containers
        preempted = named or count > self._preempted
        self._preempted += preempted
        return preempted

    def close(self) -> None:
        """See ``Placer.close``: YARN ends the containers with the application master."""

    def terminate(self) -> None:
        """See ``Placer.terminate``: YARN signals the agents itself."""

    def _call(self, method: str, request: Any) -> Any:
        try:
            return self._client._call(method, request, timeout=CALL_SECONDS)
        except KeyError:
            raise
        except ValueError as exc:
            raise PlacementError(
                _("YARN refused: {error}").format(error=exc), permanent=True
            ) from exc
        except Exception as exc:
            # grpc and skein raise their own errors; the master may be busy or ending.
            time.sleep(0.1)
            sentence = _("the application master does not answer: {name}: {error}").format(
                name=type(exc).__name__, error=exc
            )
            raise PlacementError(sentence[:300]) from exc


def _master_of(skein: Any) -> Any:
    """Return the client of this container's master, with a channel for large answers."""
    grpc, client = skein.core.grpc, skein.ApplicationClient.from_current()
    client.close()
    certificate, key = client.security._get_bytes("cert"), client.security._get_bytes("key")
    client._channel = grpc.secure_channel(
        client.address,
        grpc.ssl_channel_credentials(certificate, key, certificate),
        [
            ("grpc.ssl_target_name_override", "skein-internal"),
            ("grpc.default_authority", "skein-internal"),
            ("grpc.max_receive_message_length", MAX_ANSWER),
        ],
    )
    client._stub = skein.proto.AppMasterStub(client._channel)
    return client


def reason_in(message: str) -> str:
    """Return YARN's text on a container without the ends of the container's own files."""
    return _FILES.split(message, maxsplit=1)[0]


def _last_line(files: str) -> str:
    """Return the last line of a container's files, apart from those that YARN adds."""
    lines = [line for line in files.splitlines() if line.strip() and not _ADDED.match(line)]
    return printable(lines[-1].strip(), MAX_LINE) if lines else ""


def ending_of(state: str, message: str) -> dict[str, str]:
    """Return why a container ended, from YARN's message."""
    reported = reason_in(message)
    text = reported.lower()
    detail = (
        message[-500:]
        if message
        else _("YARN reports {state} without a message.").format(state=state)
    )
    memory, exited = _MEMORY.search(reported), _EXITED.search(reported)
    reason = EndReason.AGENT_LOST
    if memory or "beyond the 'physical' memory limit" in text or "beyond physical memory" in text:
        reason = EndReason.OUT_OF_MEMORY
        if memory:
            detail = _("The whole container used {memory} of {memory_2}.").format(
                memory=memory.group(1), memory_2=memory.group(2)
            )
    elif exited:
        detail = _("Its container ended with exit code {code}").format(code=exited.group(1))
        line = _last_line(message[len(reported) :])
        detail += f": {line}" if line else "."
    elif "released on a *lost* node" in text or "lost node" in text:
        reason, detail = EndReason.NODE_LOST, _("Its node was lost.")
    elif "localiz" in text or "filenotfound" in text:
        reason = EndReason.LOCALISATION_FAILED
    elif "invalid resource request" in text:
        reason = EndReason.NEVER_FITS
    elif state == "SUCCEEDED":
        detail = _("Its container ended by itself.")
    return {"reason": reason.value, "detail": detail}
