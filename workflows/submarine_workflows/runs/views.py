"""State of a run, computed from its journal.

Used by the command line and notebooks, also after the runner was killed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from submarine_jobs.errors import UsageError
from submarine_runtime.translation import _
from submarine_workflows.model import Kind, Workflow, from_json, path_of
from submarine_workflows.runs.folders import RunFolder
from submarine_workflows.runs.journal import Event, read_journal
from submarine_workflows.runs.statuses import Status

STOPPED = _("The runner ended unexpectedly: it was killed, or the machine stopped.")


@dataclass(frozen=True)
class NodeView:
    """A node and its status.

    Attributes
    ----------
    attempt
        Counts from 0; increases with retries and when a run is resumed.
    """

    path: str
    kind: str
    status: Status = Status.READY
    attempt: int = 0
    started: float | None = None
    ended: float | None = None
    code: int | None = None
    reason: str = ""
    log: str = ""
    depends_on: tuple[str, ...] = ()
    condition: str = ""
    outputs: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {**asdict(self), "status": str(self.status), "depends_on": list(self.depends_on)}


@dataclass(frozen=True)
class RunView:
    """A run and its nodes.

    Attributes
    ----------
    starts
        Number of starts: one, plus one for each ``--resume``.
    """

    run: str
    workflow: Workflow
    folder: Path
    status: Status
    nodes: tuple[NodeView, ...]
    alive: bool = False
    reason: str = ""
    started: float = 0.0
    ended: float | None = None
    pid: int = 0
    execution: int = 0
    starts: int = 0
    source: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)

    def node(self, path: str) -> NodeView:
        """Return the node of that path.

        Raises
        ------
        UsageError
            If it does not exist.
        """
        for node in self.nodes:
            if node.path == path:
                return node
        names = ", ".join(node.path for node in self.nodes[:20])
        raise UsageError(
            _("{run} has no node {path}; it has: {names}.").format(
                run=self.run, path=path[:80], names=names
            )
        )

    def states(self) -> dict[str, str]:
        """Return node -> status of started top-level nodes, for ``as_svg``."""
        return {n.path: str(n.status) for n in self.nodes if n.status is not Status.READY}

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "run": self.run,
            "workflow": self.workflow.name,
            "status": str(self.status),
            "reason": self.reason,
            "alive": self.alive,
            "started": self.started,
            "ended": self.ended,
            "pid": self.pid,
            "execid": self.execution,
            "starts": self.starts,
            "file": self.source,
            "folder": str(self.folder),
            "parameters": dict(self.parameters),
            "options": dict(self.options),
            "nodes": [node.to_json() for node in self.nodes],
        }


def view_of(run: RunFolder, unwritten: Sequence[Event] = ()) -> RunView:
    """Return the state of a run.

    Parameters
    ----------
    unwritten
        Events that its runner could not write.

    Raises
    ------
    UsageError
        If its files cannot be read.
    """
    alive = run.alive  # first: a run that ends before the journal is read is not lost
    try:
        workflow = from_json(json.loads(run.workflow.read_bytes()))
        events = read_journal(run.journal)
    except (OSError, ValueError) as exc:
        raise UsageError(
            _("The run {run} cannot be read: {error}.").format(run=run.run, error=exc)
        ) from None
    folding = _ViewBuilder(run, workflow)
    for event in (*events, *unwritten):
        with suppress(KeyError, TypeError, ValueError):  # a line of a newer release
            folding.add(event)
    # The run may have been resumed meanwhile.
    return folding.view(alive or (folding.is_open and run.alive))


class _ViewBuilder:
    def __init__(self, run: RunFolder, workflow: Workflow) -> None:
        self._nodes = {node.path: node for node in _initial_nodes(workflow)}
        self._view = RunView(run.run, workflow, run.path, Status.READY, ())
        self.is_open = False

    def add(self, event: Event) -> None:
        kind, time = event["event"], float(event["time"])
        if kind == "begin":
            self.is_open = True
            self._begin(event, time)
        elif kind == "node":
            self._node(event, time)
        elif kind == "flow":
            self._view = replace(self._view, status=Status(event["status"]))
        elif kind == "end":
            self.is_open = False
            self._view = replace(
                self._view,
                status=Status(event["status"]),
                reason=str(event.get("reason", "")),
                ended=time,
            )

    def _begin(self, event: Event, time: float) -> None:
        view = self._view
        for path, node in self._nodes.items():
            if view.starts and not node.status.counts_as_success:
                self._nodes[path] = replace(node, status=Status.READY, reason="", code=None)
        self._view = replace(
            view,
            status=Status.RUNNING,
            reason="",
            started=float(event.get("start", view.started or time)),
            ended=None,
            pid=int(event["pid"]),
            execution=int(event["execid"]),
            starts=view.starts + 1,
            source=str(event.get("file", "")),
            parameters=dict(event.get("parameters", {})),
            options=dict(event.get("options", {})),
        )

    def _node(self, event: Event, time: float) -> None:
        node = self._nodes[str(event["node"])]
        status = Status(event["status"])
        node = replace(
            node,
            status=status,
            attempt=int(event.get("attempt", node.attempt)),
            code=event.get("code"),
            reason=str(event.get("reason", "")),
            log=str(event.get("log", node.log)),
        )
        if status is Status.RUNNING:
            node = replace(node, started=time, ended=None)
        if status.ended:
            node = replace(node, ended=time, outputs=dict(event.get("outputs", {})))
        self._nodes[node.path] = node

    def view(self, alive: bool) -> RunView:
        nodes = tuple(self._nodes.values())
        view = replace(self._view, alive=alive and self.is_open)
        if self.is_open and not alive:
            view = replace(view, status=Status.EXECUTION_STOPPED, reason=STOPPED)
            nodes = tuple(_as_lost(node) for node in nodes)
        return replace(view, nodes=nodes)


def _as_lost(node: NodeView) -> NodeView:
    return replace(node, status=Status.KILLED, reason=STOPPED) if node.status.started else node


def _initial_nodes(workflow: Workflow) -> list[NodeView]:
    return [
        NodeView(
            path_of(node, flows),
            node.kind.value if node.kind is not Kind.OTHER else node.type,
            depends_on=node.depends_on,
            condition=node.condition,
        )
        for flows, node in workflow.walk()
    ]
