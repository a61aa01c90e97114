"""What the state machine of a job wants done; plain data, done by ``conductor``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Union

from submarine_runtime.protocol.link import Member
from submarine_runtime.protocol.reasons import EndReason
from submarine_runtime.protocol.states import State


@dataclass(frozen=True)
class Ask:
    """A container for a task; ``seat`` names this request and nothing else, ever.

    Attributes
    ----------
    elsewhere
        The last one was given back because of its node. Asked for a moment later, at random:
        otherwise the same node, which reports at a fixed beat, would be the next to offer one.
    """

    task: str
    seat: str
    elsewhere: bool = False


@dataclass(frozen=True)
class Release:
    """Take the container of a seat away, or the request for it."""

    seat: str


@dataclass(frozen=True)
class Send:
    """A line to the agent that holds a seat; dropped when its link is away."""

    seat: str
    line: dict[str, Any]


@dataclass(frozen=True)
class Start:
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
class Note:
    """An event of the job; with ``state`` the job's state changes too."""

    kind: str
    detail: str = ""
    task: str | None = None
    state: State | None = None
    reason: EndReason | None = None
    data: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Survey:
    """Find the snapshots of the job and choose the restore point of an epoch."""

    epoch: int


@dataclass(frozen=True)
class End:
    """Everybody has left: publish the record and go."""


Action = Union[Ask, Release, Send, Start, Survey, Note, End]
