"""The coordinator's one thread: hears agents, tells the machine, does what it wants done.

Everything that may block is elsewhere: placers (``placement``), the job directory (``shipping``),
viewers (``viewers``). Decides nothing about the job; ``machine`` does.
"""

from __future__ import annotations

import os
import time
from collections import deque
from typing import Any, Mapping

from submarine_runtime.coordinator import machine
from submarine_runtime.coordinator.feed import Source
from submarine_runtime.coordinator.gang import waiting_sentence
from submarine_runtime.coordinator.hands import Hands
from submarine_runtime.coordinator.job_record import JobStatus
from submarine_runtime.coordinator.journal import Journal
from submarine_runtime.coordinator.link_server import Peer
from submarine_runtime.coordinator.losses import silent
from submarine_runtime.coordinator.play import ATTENDED, Act, Play, Stage
from submarine_runtime.coordinator.pulse import Pulse

#: Seconds between two looks at the time.
TICK = 0.5
PENDING_SECONDS = 2.0
#: What other threads tell that ends the job, or our part in it.
_ENDING = frozenset({"cancel", "leave", "superseded"})
#: What agents say that the machine needs to know.
_FOR_MACHINE = frozenset({"register", "state", "ports", "left"})


class Conductor(Hands):
    """Runs one job.

    Parameters
    ----------
    parent
        Process without which there is no point in going on; None: do not look.
    """

    def __init__(
        self,
        play: Play,
        status: JobStatus,
        journal: Journal,
        parent: int | None,
        pulse: Pulse,
    ) -> None:
        super().__init__(play, status)
        self.pulse = pulse
        self._journal = journal
        self._parent = parent
        self._told: deque[dict[str, Any]] = deque()
        self._agents: dict[str, tuple[str, int]] = {}
        self._waiting: dict[str, deque[dict[str, Any]]] = {}
        self._next_tick = self._next_pending = 0.0
        self.why_pending = ""
        self.leave = ""

    # From any thread

    def tell(self, message: dict[str, Any]) -> None:
        """A message from another thread."""
        self._told.append(message)
        self.server.wake()

    def expire(self, why: str) -> None:
        """The lease of the job is over."""
        self.tell({"type": "expired", "detail": why})

    def must_go(self) -> bool:
        """Whether somebody has said that the job is to end, or this coordinator."""
        told = list(self._told)
        return bool(self.leave) or any(message["type"] in _ENDING for message in told)

    def uncertain(self) -> bool:
        """Whether any seat's fate is uncertain, so that a look at the containers is worth it."""
        play = self.play
        if play.fences or play.departing:
            return True
        return any(
            task.stage is Stage.ASKED or (task.stage in ATTENDED and not task.linked)
            for task in list(play.tasks.values())
        )

    def sources(self) -> dict[str, Source]:
        """Task -> where its agent listens, of those that have an agent now."""
        found = {}
        for task in list(self.play.tasks.values()):
            address = self._agents.get(task.seat)
            if address is not None and task.linked:
                found[task.name] = Source(*address, task.epoch, task.attempt)
        return found

    # The loop

    def replay(self) -> bool:
        """Play the journal again; False when there is nothing in it."""
        if self._journal.fresh:
            return False
        for entry in self._journal.entries():
            if "type" in entry:
                machine.apply(self.play, entry)
                self._report(entry)
        return True

    def resume(self) -> None:
        """Go on after ``replay``: links are away, some requests may never have been made."""
        self._apply({"type": "resumed"})
        for task in self.play.tasks.values():
            if task.stage is Stage.ASKED:
                self.placement.request(task.name, task.orders, task.seat)
        self.reporter.sync_all()

    def begin(self, fences: Mapping[str, float], again: bool) -> None:
        """Ask for the gang; ``again``: an earlier attempt of the application has begun it."""
        self._apply({"type": "begin", "fences": dict(fences), "again": again})

    def run(self) -> None:
        """Until everybody has left, or ``leave`` says why to go at once."""
        while self.play.act is not Act.OVER and not self.leave:
            self.server.poll(self._next_tick - time.monotonic())
            while self._told:
                self._take(self._told.popleft())
            now = time.monotonic()
            if now >= self._next_tick:
                self._next_tick = now + TICK
                self.pulse.beat()
                self._tick(now)
        self.pulse.stop()

    def _tick(self, now: float) -> None:
        if self._parent is not None and os.getppid() != self._parent:
            self.leave = "parent"
            return
        self.server.expel(now)
        for message in silent(self.play, now):
            self._apply(message)
        self._apply({"type": "tick", "why": self.why_pending}, quiet=True)
        self.reporter.sync_all()
        sentence = waiting_sentence(self.play, now)
        if not sentence or now >= self._next_pending:
            self._next_pending = now + (PENDING_SECONDS if sentence else 0.0)
            if sentence and self.why_pending:
                sentence = f"{sentence}: {self.why_pending}"
            self.status.set_record(pending=sentence)

    def _take(self, message: dict[str, Any]) -> None:
        kind = message["type"]
        if kind == "leave" or kind == "superseded":
            self.leave = self.leave or str(message.get("why") or kind)
        elif kind == "save":
            self._save(message)
        elif kind == "note":
            self.status.note(message["kind"], message.get("detail", ""), message.get("task"))
        elif kind == "cancel" and self.play.verdict is not None and message.get("again"):
            return
        else:
            self._apply(message)

    def _apply(self, message: dict[str, Any], quiet: bool = False) -> None:
        """Tell the machine; ``quiet``: worth remembering only if something came of it."""
        message.setdefault("t", time.monotonic())
        actions = machine.apply(self.play, message)
        if actions or not quiet:
            self._journal.append(message)
        if message["type"] == "register":
            self._accept(message)
        self._report(message)
        for action in actions:
            self.perform(action)

    def _report(self, message: Mapping[str, Any]) -> None:
        task = self.play.seats.get(str(message.get("seat")))
        if task is not None and task.seat == message.get("seat"):
            self.reporter.hear(task.name, message)
            if message["type"] == "register" and message.get("agent_port"):
                host = str(message.get("address") or message.get("host"))
                self._agents[task.seat] = (host, int(message["agent_port"]))
            self.reporter.sync(task)

    # Agents

    def on_line(self, peer: Peer, line: dict[str, Any]) -> None:
        """A line of an agent's link."""
        kind = line.get("type")
        if kind == "heartbeat":
            self._heartbeat(peer, line)
        elif kind == "register":
            peer.seat = str(line.get("seat") or "")
            self.speaking = peer
            self._apply(line)
            self.speaking = None
        elif self.peers.get(peer.seat) is not peer:
            self.server.close(peer)
        elif kind in _FOR_MACHINE:
            self._apply({**line, "seat": peer.seat})
            if kind == "state" and line.get("state") in ("running", "ended"):
                self._note_task(peer.seat, line)
        elif kind == "event":
            task = self.play.seats[peer.seat].name
            data = line.get("data")
            detail = str(line.get("detail") or "")
            kept = data if isinstance(data, dict) else {}
            self.status.note(str(line.get("kind") or "warning")[:50], detail, task, data=kept)
        elif kind == "saved":
            waiting = self._waiting.pop(str(line.get("id")), None)
            if waiting is not None:
                waiting.append(line)

    def on_closed(self, peer: Peer) -> None:
        """A link broke."""
        if self.peers.get(peer.seat) is peer:
            del self.peers[peer.seat]
            self._apply({"type": "unlinked", "seat": peer.seat})

    def _heartbeat(self, peer: Peer, line: dict[str, Any]) -> None:
        task = None
        if self.peers.get(peer.seat) is peer:
            task = machine.heard(self.play, peer.seat, time.monotonic())
        if task is None:
            self.server.close(peer)
            return
        self.server.send_bytes(peer, b'{"type":"ack","n":%d}\n' % int(line["n"]))
        if len(line) > 2:
            self.status.measure(task.name, line)

    def _accept(self, message: Mapping[str, Any]) -> None:
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

    def _note_task(self, seat: str, line: Mapping[str, Any]) -> None:
        task = self.play.seats.get(seat)
        if task is None:
            return
        data: dict[str, Any] = {"task": self.status.task_json(task.name)}
        if line.get("state") == "ended":
            data["logs"] = self.status.logs_of(task.name, line)
        self.status.note("task", str(line.get("state")), task.name, data=data)

    def _save(self, message: dict[str, Any]) -> None:
        """Pass a wish to save on to the chief; the answer goes to ``message["answer"]``."""
        chief = self.play.chief
        peer = self.peers.get(chief.seat)
        if peer is None or chief.stage is not Stage.RUNNING:
            message["answer"].append({"error": f"{chief.name} is not running"})
            return
        self._waiting[message["id"]] = message["answer"]
        self.server.send(peer, {"type": "save", "id": message["id"], "name": message["name"]})
