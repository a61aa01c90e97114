"""The coordinator's event loop: the only thread that changes the state of the job.

The loop passes events to the state machine, writes them to the journal and executes the actions.
Blocking operations run in other threads: container requests, job directory, clients' requests.
Those threads post messages to the ``Inbox``.
"""

from __future__ import annotations

import os
from collections import deque
from contextlib import suppress
from typing import Any, Callable, Mapping

from submarine_runtime.coordinator import server as job_server
from submarine_runtime.coordinator.action_executor import ActionExecutor
from submarine_runtime.coordinator.agent_links import AgentLinks
from submarine_runtime.coordinator.job_directory import SnapshotSurvey
from submarine_runtime.coordinator.machine import (
    MONITORED,
    ChooseRestorePoint,
    JobPhase,
    JobState,
    Stage,
    handle,
    lost_agent_events,
    waiting_sentence,
)
from submarine_runtime.coordinator.placement import PlacementThread
from submarine_runtime.coordinator.record import JobStatus, Journal
from submarine_runtime.coordinator.reporter import Reporter
from submarine_runtime.coordinator.supervision import LivenessFile
from submarine_runtime.network import client_context
from submarine_runtime.port import Connection, PortServer
from submarine_runtime.suspend import SuspendMeter, monotonic
from submarine_runtime.translation import _

#: Seconds between two ticks.
TICK = 0.5
#: Seconds between two updates of the sentence about missing containers.
PENDING_SECONDS = 2.0
#: Messages that end the job or this coordinator.
_ENDING = frozenset({"cancel", "leave", "superseded"})


class Inbox:
    """Messages of other threads to the event loop.

    Parameters
    ----------
    wake
        Ends the wait of the loop.
    """

    def __init__(self, wake: Callable[[], None]) -> None:
        self._messages: deque[dict[str, Any]] = deque()
        self._wake = wake

    def post(self, message: dict[str, Any]) -> None:
        """Add a message; from any thread."""
        self._messages.append(message)
        self._wake()

    def expire_lease(self, why: str) -> None:
        """Post that the lease of the job has expired."""
        self.post({"type": "expired", "detail": why})

    def take(self) -> dict[str, Any] | None:
        """Return the oldest message; None if there is none."""
        return self._messages.popleft() if self._messages else None

    @property
    def ends_job(self) -> bool:
        """Whether a message ends the job or this coordinator."""
        return any(message["type"] in _ENDING for message in list(self._messages))


class EventLoop:
    """Event loop of one job.

    Parameters
    ----------
    parent
        Id of the supervisor's process; the loop ends when it is not the parent any more. None: do
        not check.
    secret
        ``token`` and ``certificate`` of the job, for requests to the agents.

    Attributes
    ----------
    links
        The agents' links.
    stop_reason
        Why to leave at once, without ending the job: ``terminated``, ``parent``, ``superseded``,
        ``closed`` or ``storage``; empty: continue.
    pending_reason
        What the cluster reports about missing containers.
    """

    def __init__(
        self,
        job: JobState,
        status: JobStatus,
        journal: Journal,
        server: PortServer,
        inbox: Inbox,
        placement: PlacementThread,
        survey: SnapshotSurvey,
        liveness: LivenessFile,
        parent: int | None,
        secret: Mapping[str, str],
    ) -> None:
        self.job, self.status, self.server, self.inbox = job, status, server, inbox
        self.placement = placement
        self.reporter = Reporter(job, status)
        self.links = AgentLinks(job, status, server, self._handle_agent_event)
        self._secret = secret
        self._executor = ActionExecutor(
            job, self.links, placement, survey, self.reporter, self.stack_collector
        )
        self._journal, self._liveness, self._parent = journal, liveness, parent
        self._next_tick = self._next_pending = 0.0
        self._suspended = SuspendMeter()
        self._storage_wait = ""
        self._journal_failed = False
        self.stop_reason = ""
        self.pending_reason = ""

    def show_storage_wait(self, sentence: str) -> None:
        """Set the sentence of the record about a wait for the file system; empty: no wait.

        The record changes at once, because the loop does not run at the start and at the end.
        """
        if sentence or self._storage_wait:
            self.status.set_record(pending=sentence)
        self._storage_wait = sentence

    def stack_collector(self) -> job_server.StackCollector:
        """Return what takes the stacks of tasks."""
        token, context = self._secret["token"], client_context(self._secret["certificate"])
        endpoints, post = self.links.endpoints, self.inbox.post
        return job_server.StackCollector(token, context, endpoints, post)

    def must_end(self) -> bool:
        """Whether a request to end the job or this coordinator has arrived."""
        return bool(self.stop_reason) or self.inbox.ends_job

    def replay(self) -> None:
        """Replay the journal."""
        for entry in self._journal.entries():
            if "type" in entry:
                with suppress(Exception):  # It failed in the same way when it was recorded.
                    handle(self.job, entry)
                    self._report(entry)

    def resume(self) -> None:
        """Continue after ``replay``: links are closed, and requests may not have been sent.

        Nothing starts before an event ``checked``.
        """
        self.handle({"type": "resumed", "unchecked": True})
        for task in self.job.tasks.values():
            if task.stage is Stage.REQUESTED:
                self.placement.request(task.name, task.role, task.seat)
        restore = self.job.restore
        if restore.surveying == self.job.epoch != restore.epoch:
            self._executor.execute(ChooseRestorePoint(restore.surveying))
        self.reporter.update_all()

    def begin(self, fences: Mapping[str, float], again: str) -> None:
        """Request the gang.

        Parameters
        ----------
        again
            Why the job starts again; empty at its first start.
        """
        self.handle({"type": "begin", "fences": dict(fences), "again": again})

    def run(self) -> None:
        """Run until all agents have left, or until ``stop_reason`` is set."""
        while self.job.phase is not JobPhase.ENDED and not self.stop_reason:
            self.server.poll(self._next_tick - monotonic())
            while (message := self.inbox.take()) is not None:
                self._handle_message(message)
            now = monotonic()
            if now >= self._next_tick:
                self._next_tick = now + TICK
                self._liveness.touch()
                self._tick(now)
        self._liveness.remove()

    def handle(
        self, event: dict[str, Any], sender: Connection | None = None, quiet: bool = False
    ) -> None:
        """Pass an event to the state machine and execute its actions.

        Parameters
        ----------
        sender
            Connection that a ``register`` event came from.
        quiet
            Write the event to the journal only if it has actions.
        """
        event.setdefault("t", monotonic())
        try:
            actions = handle(self.job, event)
        except Exception:
            self._journal.append(event)  # A replay must repeat what it has changed.
            raise
        if (actions or not quiet) and not self._journal.append(event):
            self._report_journal_failure()
        if event["type"] == "register" and sender is not None:
            self.links.accept(event, sender)
        self._report(event)
        for action in actions:
            self._executor.execute(action, sender)

    def _handle_agent_event(self, event: dict[str, Any], sender: Connection | None) -> None:
        self.handle(event, sender)

    def _handle_message(self, message: dict[str, Any]) -> None:
        kind = message["type"]
        if kind in ("leave", "superseded"):
            self.stop_reason = self.stop_reason or str(message.get("why") or kind)
        elif kind == "save":
            self.links.save_model(message)
        elif kind == "tokens":  # Never to the state machine, whose events are in the journal.
            self.links.send_tokens(message["tokens"])
        elif kind == "note":
            self.status.add_event(message["kind"], message.get("detail", ""), message.get("task"))
        elif kind == "cancel" and self.job.verdict is not None and message.get("again"):
            return
        else:
            self.handle(message)

    def _tick(self, now: float) -> None:
        if self._parent is not None and os.getppid() != self._parent:
            self.stop_reason = "parent"
            return
        seconds = self._suspended.seconds()
        if seconds:
            self._suspended.reset()
            self.handle({"type": "suspended", "seconds": round(seconds, 1)})
        self.server.close_unauthenticated(now)
        for event in lost_agent_events(self.job, now):
            self.handle(event)
        self.handle({"type": "tick", "why": self.pending_reason}, quiet=True)
        self.reporter.update_all()
        self._show_pending(now)

    def _show_pending(self, now: float) -> None:
        """Set the sentence of the record about what the job waits for."""
        storage = self._storage_wait or self.links.storage_waits()
        sentence = storage or waiting_sentence(self.job, now)
        if not sentence or now >= self._next_pending:
            self._next_pending = now + (PENDING_SECONDS if sentence else 0.0)
            if sentence and self.pending_reason and not storage:
                sentence = f"{sentence}: {self.pending_reason}"
            self.status.set_record(pending=sentence)

    def _report_journal_failure(self) -> None:
        if self._journal_failed:
            return
        self._journal_failed = True
        detail = _(
            "The coordinator cannot write its journal: {failure}. If it is restarted before "
            "there is space on its disk, the gang starts in a new epoch."
        ).format(failure=self._journal.failure)
        self.status.add_event("warning", detail)

    def _report(self, event: Mapping[str, Any]) -> None:
        """Update the record after an event."""
        if event["type"] == "restore_point":
            self.reporter.update_restore_point()
        task = self.job.seats.get(str(event.get("seat")))
        if task is not None and task.seat == event.get("seat"):
            self.reporter.add_agent_event(task.name, event)
            if event["type"] == "register":
                self.links.set_address(event)
            self.reporter.update_task(task)


def containers_uncertain(job: JobState) -> bool:
    """Whether the state of a container is unknown, so that the placer must be polled."""
    if job.fences or job.release_deadlines:
        return True
    return any(
        task.stage is Stage.REQUESTED or (task.stage in MONITORED and not task.linked)
        for task in list(job.tasks.values())
    )
