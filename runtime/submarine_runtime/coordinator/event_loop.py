"""The coordinator's one thread: tells the machine what happens, and has done what it wants done.

Agents are heard by ``ears``, and told by ``hands``. Everything that may block is elsewhere: placers
(``placement``), the job directory (``shipping``), viewers (``viewers``). Decides nothing about the
job; ``machine`` does.
"""

from __future__ import annotations

import os
from collections import deque
from contextlib import suppress
from typing import Any, Mapping

from submarine_runtime.coordinator.agent_links import Ears
from submarine_runtime.coordinator.machine import (
    ATTENDED,
    Act,
    Play,
    Stage,
    Survey,
    silent,
    state_machine as machine,
    waiting_sentence,
)
from submarine_runtime.coordinator.record import JobStatus, Journal
from submarine_runtime.coordinator.server import Source
from submarine_runtime.coordinator.supervision import Pulse
from submarine_runtime.suspend import SuspendMeter, monotonic

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
        self._suspended = SuspendMeter()
        self.why_pending = ""
        self._storage = ""
        self._journal_failed = False
        self.leave = ""

    # From any thread

    def tell(self, message: dict[str, Any]) -> None:
        """A message from another thread."""
        self._told.append(message)
        self.server.wake()

    def expire(self, why: str) -> None:
        """The lease of the job is over."""
        self.tell({"type": "expired", "detail": why})

    def say_storage(self, sentence: str) -> None:
        """Set what the job says while it waits for its file system; empty: it does not wait.

        The record has it at once, because the loop does not run before the start and at the end.
        """
        if sentence or self._storage:
            self.status.set_record(pending=sentence)
        self._storage = sentence

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

    def replay(self) -> None:
        """Play the journal again."""
        for entry in self._journal.entries():
            if "type" in entry:
                with suppress(Exception):  # it failed in the same way when it was recorded
                    machine.apply(self.play, entry)
                    self._report(entry)

    def resume(self) -> None:
        """Go on after ``replay``: links are away, some requests may never have been made.

        Nothing starts before a message ``checked``.
        """
        self.apply({"type": "resumed", "unchecked": True})
        for task in self.play.tasks.values():
            if task.stage is Stage.ASKED:
                self.placement.request(task.name, task.orders, task.seat)
        restore = self.play.restore
        if restore.surveying == self.play.epoch != restore.epoch:
            self.perform(Survey(restore.surveying))
        self.reporter.sync_all()

    def begin(self, fences: Mapping[str, float], again: str) -> None:
        """Ask for the gang; ``again``: why it starts again, empty if it never did before."""
        self.apply({"type": "begin", "fences": dict(fences), "again": again})

    def run(self) -> None:
        """Until everybody has left, or ``leave`` says why to go at once."""
        while self.play.act is not Act.OVER and not self.leave:
            self.server.poll(self._next_tick - monotonic())
            while self._told:
                self._take(self._told.popleft())
            now = monotonic()
            if now >= self._next_tick:
                self._next_tick = now + TICK
                self.pulse.beat()
                self._tick(now)
        self.pulse.stop()

    def _tick(self, now: float) -> None:
        if self._parent is not None and os.getppid() != self._parent:
            self.leave = "parent"
            return
        seconds = self._suspended.seconds()
        if seconds:
            self._suspended.reset()
            self.apply({"type": "suspended", "seconds": round(seconds, 1)})
        self.server.expel(now)
        for message in silent(self.play, now):
            self.apply(message)
        self.apply({"type": "tick", "why": self.why_pending}, quiet=True)
        self.reporter.sync_all()
        storage = self._storage or self.storage_waits()
        sentence = storage or waiting_sentence(self.play, now)
        if not sentence or now >= self._next_pending:
            self._next_pending = now + (PENDING_SECONDS if sentence else 0.0)
            if sentence and self.why_pending and not storage:
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
        message.setdefault("t", monotonic())
        try:
            actions = machine.apply(self.play, message)
        except Exception:
            self._journal.append(message)  # a replay must repeat what it has changed
            raise
        if (actions or not quiet) and not self._journal.append(message):
            self._warn_of_journal()
        if message["type"] == "register":
            self.accept(message)
        self._report(message)
        for action in actions:
            self.perform(action)

    def _warn_of_journal(self) -> None:
        if self._journal_failed:
            return
        self._journal_failed = True
        detail = (
            f"The coordinator cannot write its journal: {self._journal.failure}. If it is "
            "restarted before there is room on its disk, the gang starts in a new epoch."
        )
        self.status.note("warning", detail)

    def _report(self, message: Mapping[str, Any]) -> None:
        if message["type"] == "restore_point":
            self._report_restore_point()
        task = self.play.seats.get(str(message.get("seat")))
        if task is not None and task.seat == message.get("seat"):
            self.reporter.hear(task.name, message)
            if message["type"] == "register" and message.get("agent_port"):
                host = str(message.get("address") or message.get("host"))
                self._agents[task.seat] = (host, int(message["agent_port"]))
            self.reporter.sync(task)

    def _report_restore_point(self) -> None:
        """Put the gang's newest restore point into the record, and the warnings of all of them."""
        choice = self.play.restore.choice
        if not choice.empty or self.play.epoch > 1:
            self.status.set_record(notes=[*self.play.config.notes, choice.sentence()])
        for sentence in self.play.warnings:
            self.status.warn(sentence)
