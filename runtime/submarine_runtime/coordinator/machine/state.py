"""The state of a distributed job: its tasks, its gang, its verdict. Data and small questions only.

What changes it is ``machine`` with ``gang``, ``faults`` and ``leaving``. There is no socket, no
clock and no chance in here: every moment is an argument, in seconds of a monotonic clock.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from submarine_runtime.coordinator.machine.actions import Action, Note
from submarine_runtime.coordinator.machine.restore_point import Choice, Snapshot
from submarine_runtime.frameworks.ranks import BESIDE, EVALUATOR
from submarine_runtime.protocol.coordinator_config import CoordinatorConfig, RoleOrders
from submarine_runtime.protocol.link import CHIEF_ROLES, Member
from submarine_runtime.protocol.reasons import EndReason
from submarine_runtime.protocol.states import State


class Stage(str, Enum):
    """How far one task is."""

    NONE = "none"
    ASKED = "asked"
    PREPARING = "preparing"
    READY = "ready"
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    ENDED = "ended"
    LEAVING = "leaving"
    GONE = "gone"


#: Stages in which an agent must be heard of.
ATTENDED = frozenset(
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


class Act(str, Enum):
    """How far the job is."""

    GATHERING = "gathering"
    PLAYING = "playing"
    RESTING = "resting"  # between a gang that timed out and the next try
    ENDING = "ending"
    OVER = "over"


@dataclass
class Outcome:
    """How a task's program ended."""

    reason: EndReason
    detail: str = ""
    exit_code: int | None = None
    signal: int | None = None
    failure: dict[str, Any] | None = None

    @property
    def succeeded(self) -> bool:
        """Whether it ended well."""
        return self.reason is EndReason.SUCCEEDED


@dataclass(eq=False)
class Task:
    """One task.

    Attributes
    ----------
    seat
        The request for a container that counts; whoever holds another one is refused.
    wanted
        Its program is to be started as soon as that is possible.
    waiting_since
        When it began to wait for a container; None while it has one.
    placed_at, placed_on
        When its container was granted, and on which node; YARN then localizes its files.
    failed
        It has failed for good.
    stopped
        Its program was told to end, so that how it ends is nobody's fault.
    synced
        Its last snapshot has been taken since its program ended.
    saved
        Its outputs are in the job directory.
    faults
        Counted faults of a task that restarts alone although the gang does not.
    """

    orders: RoleOrders
    index: int
    kind: str
    stage: Stage = Stage.NONE
    seat: str = ""
    asks: int = 0
    nonce: str = ""
    node: str = ""
    member: Member | None = None
    linked: bool = False
    heard: float = 0.0
    epoch: int = 0
    attempt: int = 0
    wanted: bool = False
    ports_wanted: bool = False
    waiting_since: float | None = None
    placed_at: float | None = None
    placed_on: str = ""
    stop_by: float | None = None
    outcome: Outcome | None = None
    failed: bool = False
    stopped: bool = False
    restarts: int = 0
    refusals: int = 0
    synced: bool = True
    saved: bool = False
    faults: int = 0

    @property
    def name(self) -> str:
        """``worker:0``."""
        return f"{self.orders.name}:{self.index}"

    @property
    def localizing(self) -> bool:
        """Whether its container was granted and its agent has not registered yet."""
        return self.stage is Stage.ASKED and self.placed_at is not None

    @property
    def in_gang(self) -> bool:
        """Whether the others wait for it."""
        return self.kind != "sidecar"

    @property
    def in_collective(self) -> bool:
        """Whether it works in step with others: it trains, and is no server and no evaluator."""
        return self.kind == "tracked" and self.orders.name not in BESIDE

    @property
    def restarts_alone(self) -> bool:
        """Whether the others go on without it: an evaluator only reads their checkpoints."""
        return self.orders.name == EVALUATOR and self.kind == "tracked"

    @property
    def startable(self) -> bool:
        """Whether its agent would start the program now."""
        fit = self.stage is Stage.READY or (self.stage is Stage.ENDED and self.synced)
        return fit and self.linked and not self.ports_wanted


@dataclass
class Deciding:
    """Failures of an epoch of which the cause is not yet known.

    Attributes
    ----------
    until
        Moment at which the coordinator decides about a restart at the latest.
    failures
        Task and outcome of each, in the order in which they were reported.
    """

    until: float
    failures: list[tuple[str, Outcome]] = field(default_factory=list)


@dataclass
class Verdict:
    """What becomes of the job, and because of which task."""

    outcome: Outcome
    task: str | None = None


@dataclass(eq=False)
class RestoreState:
    """What is known of snapshots and restore points; changed by ``restore_state`` only.

    Attributes
    ----------
    epoch, choice
        The restore point from which an epoch starts or started; epoch 0: none was chosen yet.
    surveying
        The epoch for which a choice is awaited.
    damaged
        Keys of snapshots that could not be restored.
    reports
        Task -> snapshots of this epoch that its agent keeps, the oldest first.
    completed
        Task -> newest snapshot round that it has answered.
    round, round_at, fresh
        The newest round that was requested, when, and whether a snapshot was taken since.
    held, wanted, confirmed
        The common point that agents keep, the next one, and the tasks that keep that too.
    pruned
        Whether agents were told to delete the snapshots of earlier epochs.
    """

    epoch: int = 0
    choice: Choice = field(default_factory=Choice)
    surveying: int = 0
    damaged: set[tuple[Any, ...]] = field(default_factory=set)
    reports: dict[str, list[Snapshot]] = field(default_factory=dict)
    completed: dict[str, int] = field(default_factory=dict)
    round: int = 1
    round_at: float = 0.0
    fresh: bool = False
    held: Choice | None = None
    wanted: Choice | None = None
    confirmed: set[str] = field(default_factory=set)
    pruned: bool = False


@dataclass(eq=False)
class Play:
    """One job.

    Attributes
    ----------
    fences
        Seat -> (moment before which no replacement's program may start, task): the container of a
        lost task of which nobody knows whether it still runs.
    departing
        Seat -> moment at which a container that was told to leave is taken away.
    blamed
        Node -> faults there.
    unchecked
        Whether a restarted coordinator has not yet checked its claim and the job's record; until
        then it starts no program and no epoch.
    allocated, complete
        Whether all tasks of the gang have a container, and whether their agents have registered.
    members, cast
        The gang as its tasks were told, in order and by task.
    met
        The last epoch in which a program has used its rendezvous port.
    deciding
        What has failed in this epoch, while the coordinator waits for its cause; None: nothing.
    last_cause
        Identity (``causes.identity``) of what made the gang restart last; empty: it has not.
    """

    config: CoordinatorConfig
    tasks: dict[str, Task] = field(default_factory=dict)
    seats: dict[str, Task] = field(default_factory=dict)
    act: Act = Act.GATHERING
    unchecked: bool = False
    state: State = State.PENDING
    epoch: int = 1
    members: tuple[Member, ...] = ()
    cast: dict[str, Member] = field(default_factory=dict)
    restarts: int = 0
    free_restarts: int = 0
    port_renewals: int = 0
    gang_tries: int = 0
    enough_since: float | None = None
    rest_until: float = 0.0
    run_since: float | None = None
    allocated: bool = False
    complete: bool = False
    deciding: Deciding | None = None
    last_cause: str = ""
    verdict: Verdict | None = None
    linger_until: float | None = None
    leave_by: float = 0.0
    fences: dict[str, tuple[float, str]] = field(default_factory=dict)
    departing: dict[str, float] = field(default_factory=dict)
    blamed: dict[str, int] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    met: int = 0
    restore: RestoreState = field(default_factory=lambda: RestoreState())
    out: list[Action] = field(default_factory=list)

    def note(self, kind: str, detail: str = "", task: str | None = None, **data: Any) -> None:
        """An event."""
        self.out.append(Note(kind, detail, task, data=data))

    def become(self, state: State, detail: str = "", reason: EndReason | None = None) -> None:
        """Change the job's state, with its event; nothing when it is that already."""
        if state is not self.state:
            self.state = state
            data = {"epoch": self.epoch, "restarts": self.restarts}
            self.out.append(Note("state", detail, None, state, reason, data))

    @property
    def gang(self) -> list[Task]:
        """The tasks that start together, those that have failed for good left out."""
        return [task for task in self.tasks.values() if task.in_gang and not task.failed]

    @property
    def chief(self) -> Task:
        """The task whose outputs are the job's."""
        for role in CHIEF_ROLES:
            if f"{role}:0" in self.tasks:
                return self.tasks[f"{role}:0"]
        every = list(self.tasks.values())
        return next((task for task in every if task.kind == "tracked"), every[0])


def new_play(config: CoordinatorConfig, epoch: int = 1, asks: int = 0, restarts: int = 0) -> Play:
    """A job of which nothing has been asked for yet.

    Parameters
    ----------
    epoch, restarts
        From where an earlier attempt of the application left off.
    asks
        Number behind which seats are counted, so that no two attempts share one.

    Raises
    ------
    ValueError
        If the orders hold no task.
    """
    play = Play(config, epoch=epoch, restarts=restarts)
    # A job of nothing but a TensorBoard lives as long as that.
    serving = all(role.kind == "sidecar" for role in config.roles)
    for role in config.roles:
        kind = "tracked" if serving else role.kind
        for index in range(role.instances):
            task = Task(role, index, kind, asks=asks)
            play.tasks[task.name] = task
    if not play.tasks:
        raise ValueError("coordinator.json names no task: every role has 0 instances")
    return play
