"""Data of Azkaban executions, nodes and logs, parsed from replies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any

from submarine_runtime.translation import _
from submarine_workflows.azkaban.api.replies import Reply, number

ENDED = (
    *("SUCCEEDED", "FAILED", "KILLED", "CANCELLED", "SKIPPED", "FAILED_SUCCEEDED"),
    "EXECUTION_STOPPED",
)
SUCCESSFUL = ("SUCCEEDED", "SKIPPED", "FAILED_SUCCEEDED")
_MAX_DEPTH = 20


@dataclass(frozen=True)
class UploadResult:
    """Result of an upload: the new version of a project."""

    project_id: int
    version: str
    warning: str = ""


@dataclass(frozen=True)
class ProjectFlows:
    """A project and the ids of its flows."""

    project_id: int
    flows: tuple[str, ...]


@dataclass(frozen=True)
class StartResult:
    """Result of a start: the id of the execution, and Azkaban's message."""

    execid: int
    message: str = ""


@dataclass(frozen=True)
class FlowSchedule:
    """A schedule; ``next_run`` in the server's time zone, as the server writes it.

    Attributes
    ----------
    schedule_id
        Azkaban's id of the schedule.
    cron
        Quartz expression.
    next_run
        Next time in the server's time zone, as the server formats it.
    user
        Azkaban user that created it.
    """

    schedule_id: int
    cron: str
    next_run: str
    user: str


@dataclass(frozen=True)
class LogPiece:
    """A piece of a log: bytes ``offset`` to ``offset + length``."""

    offset: int
    length: int
    text: str


@dataclass(frozen=True)
class NodeExecution:
    """One node of an execution.

    Attributes
    ----------
    path
        Name with those of its flows, ``inner:train``; identifies its log.
    attempt
        Counts from 0.
    started, ended
        Seconds since 1970, or None.
    """

    path: str
    status: str
    type: str = ""
    attempt: int = 0
    started: float | None = None
    ended: float | None = None
    depends_on: tuple[str, ...] = ()
    nodes: tuple[NodeExecution, ...] = ()

    @property
    def over(self) -> bool:
        """Whether the status is final."""
        return self.status in ENDED


@dataclass(frozen=True)
class Execution:
    """A flow that runs or has run.

    Attributes
    ----------
    execid
        Azkaban's id of the execution.
    status
        Azkaban's name of the status.
    submitted, started, ended
        Seconds since 1970, or None.
    nodes
        Nodes in an order in which they may run; those of embedded flows are inside their flow.
    """

    execid: int
    project: str
    flow: str
    status: str
    user: str
    submitted: float | None
    started: float | None
    ended: float | None
    nodes: tuple[NodeExecution, ...]

    @property
    def over(self) -> bool:
        """Whether the status is final."""
        return self.status in ENDED

    def walk(self) -> Iterator[NodeExecution]:
        """Yield every node; those of embedded flows after the flow itself."""
        waiting = list(reversed(self.nodes))
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(reversed(node.nodes))


@dataclass(frozen=True)
class ExecutionSummary:
    """An execution as listed in a history.

    Attributes
    ----------
    execid
        Azkaban's id of the execution.
    status
        Azkaban's name of the status.
    submitted, started, ended
        Seconds since 1970, or None.
    """

    execid: int
    status: str
    user: str
    submitted: float | None
    started: float | None
    ended: float | None


def execution_of(reply: Reply, execid: int) -> Execution:
    """Parse the reply to ``fetchexecflow``."""
    return Execution(
        execid,
        _text(reply.get("project")),
        _text(reply.get("flow") or reply.get("flowId")),
        _text(reply.get("status")).upper(),
        _text(reply.get("submitUser")),
        _moment(reply.get("submitTime")),
        _moment(reply.get("startTime")),
        _moment(reply.get("endTime")),
        _in_order(_nodes(reply, "", 0)),
    )


def past_of(reply: Reply) -> list[ExecutionSummary]:
    """Parse the reply to ``fetchFlowExecutions``."""
    listed = reply.get("executions")
    return [
        ExecutionSummary(
            number(item, "execId", _("a list of executions")),
            _text(item.get("status")).upper(),
            _text(item.get("submitUser")),
            _moment(item.get("submitTime")),
            _moment(item.get("startTime")),
            _moment(item.get("endTime")),
        )
        for item in (listed if isinstance(listed, list) else [])
        if isinstance(item, Mapping)
    ]


def _nodes(value: Mapping[str, Any], path: str, depth: int) -> Iterator[NodeExecution]:
    listed = value.get("nodes")
    if not isinstance(listed, list) or depth > _MAX_DEPTH:
        return
    for item in listed:
        if not isinstance(item, Mapping):
            continue
        own = _text(item.get("nestedId")) or f"{path}{_text(item.get('id'))}"
        before = item.get("in")
        yield NodeExecution(
            own,
            _text(item.get("status")).upper(),
            _text(item.get("type")),
            _whole(item.get("attempt")),
            _moment(item.get("startTime")),
            _moment(item.get("endTime")),
            tuple(_text(one) for one in before) if isinstance(before, list) else (),
            _in_order(_nodes(item, f"{own}:", depth + 1)),
        )


def _in_order(nodes: Iterable[NodeExecution]) -> tuple[NodeExecution, ...]:
    """Sort nodes after their dependencies; Azkaban lists them in no order."""
    known = {node.path.rpartition(":")[2]: node for node in nodes}
    sorter = TopologicalSorter({name: node.depends_on for name, node in known.items()})
    try:
        sorter.prepare()
    except CycleError:  # Azkaban rejects cycles
        return tuple(known.values())
    found: list[NodeExecution] = []
    while sorter.is_active():
        ready = sorted(sorter.get_ready())
        found += [known[name] for name in ready if name in known]
        sorter.done(*ready)
    return tuple(found)


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def _whole(value: Any) -> int:
    try:
        return int(str(value))
    except ValueError:
        return 0


def _moment(value: Any) -> float | None:
    """Convert milliseconds since 1970; -1 means never."""
    return value / 1000 if isinstance(value, int) and value > 0 else None
