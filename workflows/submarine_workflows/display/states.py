"""Data that the displays of a workflow show: a run, its nodes, and captions.

Plain values for local runs and Azkaban executions; escaping is up to the renderers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True)
class NodeState:
    """State of one node; times in seconds since the epoch.

    Attributes
    ----------
    detail
        Reason of a failure, one sentence.
    """

    status: str
    started: float | None = None
    ended: float | None = None
    attempt: int = 0
    detail: str = ""


@dataclass(frozen=True)
class RunState:
    """State of a run; ``nodes`` by path, ``inner:train``.

    Attributes
    ----------
    url
        URL of the Azkaban server; empty for local runs.
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
    """Text beside a workflow.

    Attributes
    ----------
    upcoming
        Next times of its schedule.
    lines
        Sentences below the graph.
    """

    upcoming: Sequence[datetime] = ()
    lines: Sequence[str] = ()


@dataclass(frozen=True)
class NextCommand:
    """A command that may be next, and its purpose."""

    command: str
    purpose: str
