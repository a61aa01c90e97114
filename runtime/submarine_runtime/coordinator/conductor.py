"""The coordinator's one thread: tells the machine what happens, and has done what it wants done.

Agents are heard by ``ears``, and told by ``hands``. Everything that may block is elsewhere: placers
(``placement``), the job directory (``shipping``), viewers (``viewers``). Decides nothing about the
job; ``machine`` does.
"""

from __future__ import annotations

import os
import time
from collections import deque
from typing import Any, Mapping

from submarine_runtime.coordinator import machine
from submarine_runtime.coordinator.ears import Ears
from submarine_runtime.coordinator.feed import Source
from submarine_runtime.coordinator.gang import waiting_sentence
from submarine_runtime.coordinator.job_record import JobStatus
from submarine_runtime.coordinator.journal import Journal
from submarine_runtime.coordinator.losses import silent
from submarine_runtime.coordinator.play import ATTENDED, Act, Play, Stage
from submarine_runtime.coordinator.pulse import Pulse

#: Seconds between two looks at the time.
TICK = 0.5
PENDING_SECONDS = 2.0
#: What other threads tell that ends the job, or our part in it.
_ENDING = frozenset({"cancel", "leave", "superseded"})


class Conductor(Ears):
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
        self.apply({"type": "resumed"})
        for task in self.play.tasks.values():
            if task.stage is Stage.ASKED:
                self.placement.request(task.name, task.orders, task.seat)
        self.reporter.sync_all()

    def begin(self, fences: Mapping[str, float], again: bool) -> None:
        """Ask for the gang; ``again``: an earlier attempt of the application has begun it."""
        self.apply({"type": "begin", "fences": dict(fences), "again": again})

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
            self.apply(message)
        self.apply({"type": "tick", "why": self.why_pending}, quiet=True)
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
            self.save(message)
        elif kind == "note":
            self.status.note(message["kind"], message.get("detail", ""), message.get("task"))
        elif kind == "cancel" and self.play.verdict is not None and message.get("again"):
            return
        else:
            self.apply(message)

    def apply(self, message: dict[str, Any], quiet: bool = False) -> None:
        """Tell the machine; ``quiet``: worth remembering only if something came of it."""
        message.setdefault("t", time.monotonic())
        actions = machine.apply(self.play, message)
        if actions or not quiet:
            self._journal.append(message)
        if message["type"] == "register":
            self.accept(message)
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
