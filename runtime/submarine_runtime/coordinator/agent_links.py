"""Hears the agents of a job: their links, and every line that comes over one.

What the job turns on goes to the machine by ``apply``; what is only told goes to the record. Does
not decide anything, and begins no talk but a wish to save.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from typing import Any, Mapping

from submarine_runtime.coordinator.action_executor import Hands
from submarine_runtime.coordinator.machine import Play, Stage, state_machine as machine
from submarine_runtime.coordinator.record import JobStatus
from submarine_runtime.coordinator.server import Peer
from submarine_runtime.protocol.link_validation import check_agent_line
from submarine_runtime.suspend import monotonic

#: What agents say that the machine needs to know.
_FOR_MACHINE = frozenset({"register", "state", "ports", "left", "snapshot", "synced"})


class Ears(Hands, ABC):
    """The conductor's ears; of a link counts only what comes from the seat's newest one."""

    def __init__(self, play: Play, status: JobStatus) -> None:
        super().__init__(play, status)
        self._waiting: dict[str, deque[dict[str, Any]]] = {}
        self._storage_waits: dict[str, str] = {}

    @abstractmethod
    def apply(self, message: dict[str, Any], quiet: bool = False) -> None:
        """Tell the machine; ``quiet``: worth remembering only if something came of it."""

    def on_line(self, peer: Peer, line: dict[str, Any]) -> None:
        """Handle a line of an agent's link.

        Raises
        ------
        ValueError
            If it is malformed; the link server then closes the link.
        """
        check_agent_line(line)
        kind = line["type"]
        if kind == "heartbeat":
            self._heartbeat(peer, line)
        elif kind == "register":
            if peer.seat not in ("", line["seat"]):
                raise ValueError(f"{peer.seat} registers again, as {line['seat'][:100]}")
            peer.seat = line["seat"]
            self.speaking = peer
            try:
                self.apply(line)
            finally:
                self.speaking = None
        elif self.peers.get(peer.seat) is not peer:
            self.server.close(peer)
        elif kind in _FOR_MACHINE:
            self.apply({**line, "seat": peer.seat})
            if kind == "state" and line.get("state") in ("running", "ended"):
                self._note_task(peer.seat, line)
        elif kind == "event":
            task = self.play.seats.get(peer.seat)
            if task is None:
                self.server.close(peer)  # its container has ended
                return
            detail, data = line.get("detail") or "", line.get("data") or {}
            self.status.note(line["kind"][:50] or "warning", detail, task.name, data=data)
        elif kind == "saved":
            waiting = self._waiting.pop(str(line.get("id")), None)
            if waiting is not None:
                waiting.append(line)

    def storage_waits(self) -> str:
        """Return which tasks wait for the file system of the job directory; empty: none."""
        found = {
            task.name: sentence
            for task in self.play.tasks.values()
            if (sentence := self._storage_waits.get(task.seat))
        }
        if not found:
            return ""
        first = next(iter(found))
        more = f" and {len(found) - 1} more" if len(found) > 1 else ""
        return f"{first}{more}: {found[first]}"

    def on_closed(self, peer: Peer) -> None:
        """A link broke."""
        if self.peers.get(peer.seat) is peer:
            del self.peers[peer.seat]
            self._storage_waits.pop(peer.seat, None)
            self.apply({"type": "unlinked", "seat": peer.seat})

    def accept(self, message: Mapping[str, Any]) -> None:
        """The link of an agent that the machine has taken in counts from now on."""
        peer, seat = self.speaking, str(message.get("seat"))
        task = self.play.seats.get(seat)
        if peer is None or task is None or task.seat != seat or not task.linked:
            return
        if task.nonce != str(message.get("nonce") or ""):
            return
        old = self.peers.get(seat)
        self.peers[seat] = peer
        if old is not None and old is not peer:
            self.server.close(old)

    def save(self, message: dict[str, Any]) -> None:
        """Pass a wish to save on to the chief; the answer goes to ``message["answer"]``."""
        chief = self.play.chief
        peer = self.peers.get(chief.seat)
        if peer is None or chief.stage is not Stage.RUNNING:
            message["answer"].append({"error": f"{chief.name} is not running"})
            return
        self._waiting[message["id"]] = message["answer"]
        self.server.send(peer, {"type": "save", "id": message["id"], "name": message["name"]})

    def _heartbeat(self, peer: Peer, line: dict[str, Any]) -> None:
        task = None
        if self.peers.get(peer.seat) is peer:
            task = machine.heard(self.play, peer.seat, monotonic())
        if task is None:
            self.server.close(peer)
            return
        self.server.send_bytes(peer, b'{"type":"ack","n":%d}\n' % line["n"])
        if "waiting" in line:
            self._storage_waits[peer.seat] = line["waiting"][:500]
        if len(line) > 2:
            self.status.measure(task.name, line)

    def _note_task(self, seat: str, line: Mapping[str, Any]) -> None:
        task = self.play.seats.get(seat)
        if task is None:
            return
        data: dict[str, Any] = {"task": self.status.task_json(task.name)}
        if line.get("state") == "ended":
            data["logs"] = self.status.logs_of(task.name, line)
        self.status.note("task", str(line.get("state")), task.name, data=data)
