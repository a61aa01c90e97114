"""What a picture of a workflow is made of: a run at one moment, its nodes, what is said beside it.

Plain values of any run, here or at Azkaban; draws nothing and makes nothing harmless.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True)
class NodeState:
    """Where one node of a run stands; times in seconds since the epoch.

    Attributes
    ----------
    detail
        Why it failed, one sentence.
    """

    status: str
    started: float | None = None
    ended: float | None = None
    attempt: int = 0
    detail: str = ""


@dataclass(frozen=True)
class RunState:
    """A run at one moment; ``nodes`` by path, ``inner:train``.

    Attributes
    ----------
    url
        Of the Azkaban that runs it; empty: this machine does.
    """

    run: str
    status: str
    started: float | None = None
    ended: float | None = None
    nodes: Mapping[str, NodeState] = field(default_factory=dict)
    detail: str = ""
    url: str = ""


@dataclass(frozen=True)
class Caption:
    """What is said beside a workflow.

    Attributes
    ----------
    upcoming
        When its schedule comes true next.
    lines
        Sentences below the graph: where it is kept, what to do next.
    """

    upcoming: Sequence[datetime] = ()
    lines: Sequence[str] = ()


@dataclass(frozen=True)
class Step:
    """A command that may come next, and what it is good for."""

    command: str
    purpose: str
