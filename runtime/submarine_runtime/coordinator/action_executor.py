"""Execute the actions of the state machine: messages to agents, container requests, events.

This module makes no decisions and does not block: container requests run in the placement thread,
restore points are chosen in a separate thread.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Callable

from submarine_runtime.coordinator.agent_links import AgentLinks
from submarine_runtime.coordinator.job_directory import SnapshotSurvey
from submarine_runtime.coordinator.machine import (
    Action,
    ChooseRestorePoint,
    FinishJob,
    JobState,
    RecordEvent,
    ReleaseContainer,
    RequestContainer,
    SendMessage,
    StartTask,
    TakeStacks,
    restore_query,
)
from submarine_runtime.coordinator.placement import PlacementThread
from submarine_runtime.coordinator.reporter import Reporter
from submarine_runtime.frameworks import collective_tasks, first_rank
from submarine_runtime.port import Connection
from submarine_runtime.protocol import Member, to_json
from submarine_runtime.translation import _

if TYPE_CHECKING:
    from submarine_runtime.coordinator.server import StackCollector


class ActionExecutor:
    """Execute state-machine actions on the agent links and the container placer.

    Parameters
    ----------
    links
        Open agent connections, by seat.
    placement
        Requests and releases containers.
    survey
        Chooses restore points.
    reporter
        Writes events and the job record.
    stack_collector
        Returns what takes the stacks of tasks.
    """

    def __init__(
        self,
        job: JobState,
        links: AgentLinks,
        placement: PlacementThread,
        survey: SnapshotSurvey,
        reporter: Reporter,
        stack_collector: Callable[[], StackCollector],
    ) -> None:
        self._job, self._links = job, links
        self._placement, self._survey, self._reporter = placement, survey, reporter
        self._stack_collector = stack_collector
        self._encoded_members: tuple[tuple[Member, ...], str] = ((), "[]")
        self._handlers: dict[type, Callable[[Any, Connection | None], None]] = {
            SendMessage: self._send,
            StartTask: self._start,
            RequestContainer: self._request,
            ReleaseContainer: self._release,
            ChooseRestorePoint: self._choose_restore_point,
            RecordEvent: self._record_event,
            TakeStacks: self._take_stacks,
            FinishJob: self._finish,
        }

    def execute(self, action: Action, sender: Connection | None = None) -> None:
        """Execute one action.

        Parameters
        ----------
        sender
            Connection of the message that is being handled; refusals are sent there.
        """
        self._handlers[type(action)](action, sender)

    def _send(self, action: SendMessage, sender: Connection | None) -> None:
        refusal = action.line["type"] == "refused"
        connection = sender if refusal else self._links.get(action.seat)
        if connection is not None:
            self._links.send(connection, action.line)

    def _start(self, action: StartTask, sender: Connection | None) -> None:
        connection = self._links.get(action.seat)
        if connection is None:
            return  # The agent receives the order when it connects again.
        # All tasks of a gang receive the same members: encode them once.
        if action.members is not self._encoded_members[0]:
            encoded = json.dumps(to_json(action.members))
            self._encoded_members = (action.members, encoded)
        line = (
            f'{{"type":"start","epoch":{action.epoch},"attempt":{action.attempt},'
            f'"restore":{json.dumps(action.restore)},"alone":{json.dumps(action.alone)},'
            f'"members":{self._encoded_members[1]}}}\n'
        )
        self._links.send_bytes(connection, line.encode())

    def _request(self, action: RequestContainer, sender: Connection | None) -> None:
        role = self._job.tasks[action.task].role
        self._placement.request(action.task, role, action.seat, action.delayed)

    def _release(self, action: ReleaseContainer, sender: Connection | None) -> None:
        self._placement.release(action.seat)
        self._links.dismiss(action.seat, _("this seat was released"))

    def _choose_restore_point(self, action: ChooseRestorePoint, sender: Connection | None) -> None:
        self._survey.start(restore_query(self._job))

    def _record_event(self, action: RecordEvent, sender: Connection | None) -> None:
        self._reporter.record_event(action)

    def _take_stacks(self, action: TakeStacks, sender: Connection | None) -> None:
        collective = collective_tasks(self._job.members)
        ranks = {member.task: first_rank(member, collective) for member in collective}
        self._stack_collector().start(action, ranks, self._job.config.spec.stall.seconds)

    def _finish(self, action: FinishJob, sender: Connection | None) -> None:
        self._reporter.update_all()
