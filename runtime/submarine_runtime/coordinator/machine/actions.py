"""Actions of the state machine of a job: plain data that ``ActionExecutor`` executes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Union

from submarine_runtime.protocol import EndReason, Member, State


@dataclass(frozen=True)
class RequestContainer:
    """Request a container for a task. ``seat`` identifies this request and is never reused.

    Attributes
    ----------
    delayed
        The previous container was released because of its node. Wait for a short random time:
        otherwise the same node, which reports at a fixed interval, would offer the next container.
    """

    task: str
    seat: str
    delayed: bool = False


@dataclass(frozen=True)
class ReleaseContainer:
    """Release the container of a seat, or cancel the request for it."""

    seat: str


@dataclass(frozen=True)
class SendMessage:
    """Send a line to the agent of a seat; dropped while its link is closed."""

    seat: str
    line: dict[str, Any]


@dataclass(frozen=True)
class StartTask:
    """Start the program of a seat as attempt ``epoch``, ``attempt`` in a gang of ``members``.

    Attributes
    ----------
    restore
        See ``protocol.link``; None: there is nothing to restore.
    alone
        The task takes no part in the gang's restore points.
    """

    seat: str
    epoch: int
    attempt: int
    members: tuple[Member, ...]
    restore: dict[str, Any] | None
    alone: bool = False


@dataclass(frozen=True)
class RecordEvent:
    """Add an event to the job's events; with ``state`` the job's state changes too."""

    kind: str
    detail: str = ""
    task: str | None = None
    state: State | None = None
    reason: EndReason | None = None
    data: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ChooseRestorePoint:
    """Find the snapshots of the job and choose the restore point of an epoch."""

    epoch: int


@dataclass(frozen=True)
class TakeStacks:
    """Take the stacks of the tasks ``running``; the programs of ``ended`` have ended."""

    epoch: int
    running: tuple[str, ...]
    ended: tuple[str, ...]


@dataclass(frozen=True)
class FinishJob:
    """All agents have left: publish the record and exit."""


Action = Union[
    RequestContainer,
    ReleaseContainer,
    SendMessage,
    StartTask,
    ChooseRestorePoint,
    RecordEvent,
    TakeStacks,
    FinishJob,
]
