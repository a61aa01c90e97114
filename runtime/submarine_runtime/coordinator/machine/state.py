"""State of a distributed job: its tasks, its gang, its verdict.

The modules of this package change the state. They use no clock, socket or random number: each time
is an argument, in seconds of a monotonic clock.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Mapping

from submarine_runtime.coordinator.machine.actions import Action, RecordEvent
from submarine_runtime.frameworks import EVALUATOR, NOT_COLLECTIVE_ROLES
from submarine_runtime.protocol import (
    CHIEF_ROLES,
    CoordinatorConfig,
    EndReason,
    Member,
    Role,
    State,
)
from submarine_runtime.restore_points import RestorePoint, Snapshot

#: An event of the state machine: ``type``, ``t`` (time) and the fields of its type.
Event = Mapping[str, Any]


class Stage(str, Enum):
    """Stage of one task."""

    NONE = "none"
    REQUESTED = "requested"
    PREPARING = "preparing"
    READY = "ready"
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    ENDED = "ended"
    LEAVING = "leaving"
    GONE = "gone"


#: Stages in which the agent sends heartbeats.
MONITORED = frozenset(
    {
        Stage.PREPARING,
        Stage.READY,
        Stage.STARTING,
        Stage.RUNNING,
        Stage.STOPPING,
        Stage.ENDED,
        Stage.LEAVING,
    }
)
#: Stages in which the user's program may be running.
ACTIVE = frozenset({Stage.STARTING, Stage.RUNNING, Stage.STOPPING})


class JobPhase(str, Enum):
    """Phase of the job."""

    GATHERING = "gathering"
    RUNNING = "running"
    BACKOFF = "backoff"  # Between a gang that timed out and the next attempt.
    ENDING = "ending"
    ENDED = "ended"


@dataclass
class Outcome:
    """How a task's program ended.

    Parameters
    ----------
    failed
        When its first process failed, in seconds since the epoch by the clock of its node.
    """

    reason: EndReason
    detail: str = ""
    exit_code: int | None = None
    signal: int | None = None
    failure: dict[str, Any] | None = None
    failed: float | None = None

    @property
    def succeeded(self) -> bool:
        """Whether the program succeeded."""
        return self.reason is EndReason.SUCCEEDED


@dataclass(eq=False)
class Task:
    """One task.

    Attributes
    ----------
    seat
        The current request for a container. The agent of any other seat is refused.
    start_requested
        Start the program as soon as possible.
    waiting_since
        Start of the wait for a container; None while the task has one.
    placed_at, placed_on
        When the container was granted, and its node. YARN then localizes the files.
    failed
        The task has failed permanently.
    stop_requested
        A stop of the program was requested, so its exit code is not a fault.
    synced
        The last snapshot was taken after the end of the program.
    saved
        The outputs are in the job directory.
    quiet, gpus_idle
        The agent has reported that a limit of ``--stall`` or ``--idle-gpu`` is exceeded.
    faults
        Counted faults of a task that restarts alone although the gang does not.
    """

    role: Role
    index: int
    kind: str
    stage: Stage = Stage.NONE
    seat: str = ""
    request_count: int = 0
    nonce: str = ""
    node: str = ""
    member: Member | None = None
    linked: bool = False
    last_contact: float = 0.0
    epoch: int = 0
    attempt: int = 0
    start_requested: bool = False
    ports_requested: bool = False
    waiting_since: float | None = None
    placed_at: float | None = None
    placed_on: str = ""
    stop_deadline: float | None = None
    outcome: Outcome | None = None
    failed: bool = False
    stop_requested: bool = False
    restarts: int = 0
    refusals: int = 0
    synced: bool = True
    saved: bool = False
    faults: int = 0
    quiet: bool = False
    gpus_idle: bool = False

    @property
    def name(self) -> str:
        """Name of the task, ``worker:0``."""
        return f"{self.role.name}:{self.index}"

    @property
    def localizing(self) -> bool:
        """Whether the container was granted and its agent has not registered yet."""
        return self.stage is Stage.REQUESTED and self.placed_at is not None

    @property
    def in_gang(self) -> bool:
        """Whether the gang waits for this task."""
        return self.kind != "sidecar"

    @property
    def in_collective(self) -> bool:
        """Whether the task trains in step with others, unlike servers and evaluators."""
        return self.kind == "tracked" and self.role.name not in NOT_COLLECTIVE_ROLES

    @property
    def restarts_alone(self) -> bool:
        """Whether the other tasks continue without it: an evaluator only reads checkpoints."""
        return self.role.name == EVALUATOR and self.kind == "tracked"

    @property
    def startable(self) -> bool:
        """Whether the agent can start the program now."""
        ready = self.stage is Stage.READY or (self.stage is Stage.ENDED and self.synced)
        return ready and self.linked and not self.ports_requested


@dataclass
class PendingDecision:
    """Failures of an epoch without a known cause.

    Attributes
    ----------
    until
        Latest time of the decision about a restart.
    failures
        Task and outcome of each failure, in the order of the reports.
    """

    until: float
    failures: list[tuple[str, Outcome]] = field(default_factory=list)


@dataclass
class Verdict:
    """Outcome of the job, and the task that caused it."""

    outcome: Outcome
    task: str | None = None


@dataclass(eq=False)
class RestoreState:
    """Snapshots and restore points; changed by ``restore_state`` only.

    Attributes
    ----------
    epoch, choice
        An epoch and its restore point; epoch 0: no restore point was chosen yet.
    surveying
        The epoch for which a restore point is being chosen.
    damaged
        Keys of snapshots that could not be restored.
    reports
        Task -> snapshots of this epoch that its agent keeps, the oldest first.
    completed
        Task -> newest snapshot round that it has answered.
    round, round_at, new_snapshots
        The newest round that was requested, its time, and whether a snapshot was taken since.
    kept_point, next_point, confirmed
        The common point that agents keep, the next one, and the tasks that keep that too.
    pruned
        Whether agents have the order to delete the snapshots of earlier epochs.
    """

    epoch: int = 0
    choice: RestorePoint = field(default_factory=RestorePoint)
    surveying: int = 0
    damaged: set[tuple[Any, ...]] = field(default_factory=set)
    reports: dict[str, list[Snapshot]] = field(default_factory=dict)
    completed: dict[str, int] = field(default_factory=dict)
    round: int = 1
    round_at: float = 0.0
    new_snapshots: bool = False
    kept_point: RestorePoint | None = None
    next_point: RestorePoint | None = None
    confirmed: set[str] = field(default_factory=set)
    pruned: bool = False


@dataclass(eq=False)
class JobState:
    """State of one job.

    Attributes
    ----------
    fences
        Seat -> (time, task). The container of a lost task may still run: the program of its
        replacement starts no earlier than this time.
    release_deadlines
        Seat -> time at which the container of a dismissed agent is released.
    node_faults
        Node -> number of faults on it.
    claim_unchecked
        Whether a restarted coordinator has not yet checked its claim and the job's record. Until
        then it starts no program and no epoch.
    allocated, complete
        Whether all tasks of the gang have a container, and whether their agents have registered.
    members, members_by_task
        The gang as it was sent to its tasks, in order and by task.
    rendezvous_epoch
        The last epoch in which a program has used its rendezvous port.
    pending_decision
        Failures of this epoch while the coordinator waits for their cause; None: no failure.
    stall_check, stall_reported, gpus_reported
        When to take the stacks (None: not planned), and whether a stall or idle GPUs are reported.
    last_cause
        ``causes.cause_key`` of the last restart of the gang; empty: it has not restarted.
    actions
        Actions that the event being handled requires.
    """

    config: CoordinatorConfig
    tasks: dict[str, Task] = field(default_factory=dict)
    seats: dict[str, Task] = field(default_factory=dict)
    phase: JobPhase = JobPhase.GATHERING
    claim_unchecked: bool = False
    state: State = State.PENDING
    epoch: int = 1
    members: tuple[Member, ...] = ()
    members_by_task: dict[str, Member] = field(default_factory=dict)
    restarts: int = 0
    free_restarts: int = 0
    port_renewals: int = 0
    gang_tries: int = 0
    minimum_since: float | None = None
    backoff_until: float = 0.0
    running_since: float | None = None
    allocated: bool = False
    complete: bool = False
    pending_decision: PendingDecision | None = None
    last_cause: str = ""
    verdict: Verdict | None = None
    linger_until: float | None = None
    leave_deadline: float = 0.0
    fences: dict[str, tuple[float, str]] = field(default_factory=dict)
    release_deadlines: dict[str, float] = field(default_factory=dict)
    node_faults: dict[str, int] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    rendezvous_epoch: int = 0
    stall_check: float | None = None
    stall_reported: bool = False
    gpus_reported: bool = False
    restore: RestoreState = field(default_factory=lambda: RestoreState())
    actions: list[Action] = field(default_factory=list)

    def add_event(self, kind: str, detail: str = "", task: str | None = None, **data: Any) -> None:
        """Add an event to the job's events."""
        self.actions.append(RecordEvent(kind, detail, task, data=data))

    def change_state(self, state: State, detail: str = "", reason: EndReason | None = None) -> None:
        """Change the job's state and add the event, unless the job is in this state already."""
        if state is not self.state:
            self.state = state
            data = {"epoch": self.epoch, "restarts": self.restarts}
            self.actions.append(RecordEvent("state", detail, None, state, reason, data))

    @property
    def gang(self) -> list[Task]:
        """The tasks that start together, without those that have failed permanently."""
        return [task for task in self.tasks.values() if task.in_gang and not task.failed]

    @property
    def chief(self) -> Task:
        """The task that provides the job's outputs."""
        for role in CHIEF_ROLES:
            if f"{role}:0" in self.tasks:
                return self.tasks[f"{role}:0"]
        tasks = list(self.tasks.values())
        return next((task for task in tasks if task.kind == "tracked"), tasks[0])


def new_job_state(
    config: CoordinatorConfig, epoch: int = 1, request_count: int = 0, restarts: int = 0
) -> JobState:
    """Return the state of a job that has not requested any container.

    Parameters
    ----------
    epoch, restarts
        Values at the end of the previous attempt of the application.
    request_count
        Seats are numbered from here, so that no two attempts share a seat.

    Raises
    ------
    ValueError
        If the configuration has no task.
    """
    job = JobState(config, epoch=epoch, restarts=restarts)
    # A job with sidecars only ends with its sidecars.
    serving = all(role.kind == "sidecar" for role in config.spec.roles)
    for role in config.spec.roles:
        kind = "tracked" if serving else role.kind
        for index in range(role.instances):
            task = Task(role, index, kind, request_count=request_count)
            job.tasks[task.name] = task
    if not job.tasks:
        raise ValueError("coordinator.json names no task: every role has 0 instances")
    return job
