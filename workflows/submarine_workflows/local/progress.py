"""State of a run: which nodes may start, the status of each node, the end of the flow.

Azkaban's rules (``azkaban.execapp.FlowRunner``). The module uses no clock, process or file, so it
is tested without them. One difference: a flow ends when all its nodes have ended, while Azkaban
ends it with its last nodes and leaves others running.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from submarine_workflows.model import (
    DEFAULT,
    Condition,
    ConditionInputs,
    Kind,
    Node,
    Workflow,
    path_of,
    read_condition,
)
from submarine_workflows.runs import FailureAction, Status

#: Path of the outermost flow.
ROOT = ""
Outputs = Mapping[str, str]


@dataclass
class Step:
    """A node, or a flow with its nodes, and its status.

    Attributes
    ----------
    path
        ``inner:train``; empty for the outermost flow.
    after
        Neighbours that depend on it.
    """

    path: str
    node: Node
    flows: tuple[Node, ...] = ()
    parent: Step | None = None
    condition: Condition = field(default_factory=lambda: read_condition(""))
    status: Status = Status.READY
    outputs: Outputs = field(default_factory=dict)
    inner: dict[str, Step] = field(default_factory=dict)
    after: list[Step] = field(default_factory=list)

    @property
    def before(self) -> Iterator[Step]:
        """The neighbours that it depends on."""
        if self.parent is not None:
            for name in dict.fromkeys(self.node.depends_on):
                yield self.parent.inner[name]

    @property
    def is_flow(self) -> bool:
        """Whether it is an embedded flow."""
        return self.node.kind is Kind.FLOW


class Progress:
    """The state of one run.

    Parameters
    ----------
    workflow
        A workflow without problems according to ``check``.
    disabled
        Paths of skipped nodes.

    Attributes
    ----------
    changed
        Called after every change of a status.
    """

    def __init__(
        self,
        workflow: Workflow,
        action: FailureAction = FailureAction.FINISH_CURRENT,
        disabled: Iterable[str] = (),
    ) -> None:
        self.root = Step(ROOT, Node(workflow.name, Kind.FLOW, nodes=workflow.nodes))
        self.steps: dict[str, Step] = {ROOT: self.root}
        self.failed = False
        self.killed = False
        self._action = action
        self._disabled = frozenset(disabled)
        self.changed: Callable[[Step], None] = lambda step: None
        self._add_steps(workflow)

    def _add_steps(self, workflow: Workflow) -> None:
        for flows, node in workflow.walk():
            parent = self.steps[":".join(flow.name for flow in flows)]
            step = Step(path_of(node, flows), node, flows, parent, read_condition(node.condition))
            parent.inner[node.name] = self.steps[step.path] = step
        for step in self.steps.values():
            for other in step.before:
                other.after.append(step)

    @property
    def leaves(self) -> list[Step]:
        """All nodes except flows."""
        return [step for step in self.steps.values() if not step.is_flow]

    def restore(self, statuses: Mapping[str, tuple[Status, Outputs]]) -> None:
        """Take over the nodes that succeeded in an earlier attempt; the others start again."""
        for path, (status, outputs) in statuses.items():
            step = self.steps.get(path)
            if step is None or step.is_flow or self._is_disabled(step):
                continue
            if status in (Status.SUCCEEDED, Status.FAILED_SUCCEEDED):
                step.status, step.outputs = status, dict(outputs)

    def advance(self) -> list[Step]:
        """Advance as far as possible; return the nodes to start now, with status ``QUEUED``."""
        if self.root.status is Status.READY:
            self._set(self.root, Status.RUNNING)
        found: list[Step] = []
        moving = True
        while moving:
            moving = False
            for flow in [step for step in self.steps.values() if step.is_flow]:
                if flow.status.started:
                    moving |= self._update_nodes(flow, found)
        return found

    def _update_nodes(self, flow: Step, found: list[Step]) -> bool:
        """Update the nodes of a started flow once; return whether a status changed."""
        moved = False
        for step in flow.inner.values():
            implied = self._next_status(step) if step.status is Status.READY else None
            if implied is None:
                continue
            moved = True
            if implied is not Status.READY:
                self._set_all(step, implied)
            elif step.is_flow:
                self._set(step, Status.RUNNING)
            else:
                self._set(step, Status.QUEUED)
                found.append(step)
        if all(step.status.ended for step in flow.inner.values()):
            self._finish(flow)
            moved = True
        return moved

    def started(self, step: Step) -> None:
        """Record that the command of a node runs."""
        self._set(step, Status.RUNNING)

    def requeue(self, step: Step) -> None:
        """Queue a failed node again, without evaluating its condition."""
        self._set(step, Status.QUEUED)

    def ended(self, step: Step, status: Status, outputs: Outputs | None = None) -> None:
        """Record the end of a node and its effect on the flow."""
        step.outputs = dict(outputs or {})
        self._set(step, status)
        if status is Status.FAILED:
            self._fail(step)

    def kill(self) -> None:
        """Start no more nodes; the caller ends the running ones."""
        if not self.killed and not self.root.status.ended:
            self.killed = True
            self._set(self.root, Status.KILLING)

    def _fail(self, step: Step) -> None:
        """Fail the flow, unless all dependent nodes have a condition for failures."""
        if step.after and all(other.condition.macro != DEFAULT for other in step.after):
            return
        flow = step.parent
        while flow is not None:
            if not flow.status.ended and flow.status is not Status.KILLING:
                self._set(flow, Status.FAILED_FINISHING)
            flow = flow.parent
        self.failed = True
        if self._action is FailureAction.CANCEL:
            self.kill()

    def _finish(self, flow: Step) -> None:
        ends = [step for step in flow.inner.values() if not step.after]
        merged: dict[str, str] = {}
        for step in ends:
            merged.update(step.outputs)
        flow.outputs = merged
        if flow.status is Status.FAILED_FINISHING:
            self._set(flow, Status.FAILED)
        elif flow.status is Status.KILLING or any(step.status.counts_as_failure for step in ends):
            self._set(flow, Status.KILLED)
        else:
            self._set(flow, Status.SUCCEEDED)
        if flow.status is Status.FAILED and flow.parent is not None:
            self._fail(flow)

    def _next_status(self, step: Step) -> Status | None:
        """Return the next status of a node that has not started; None: it continues to wait."""
        before = list(step.before)
        done = [other for other in before if other.status.ended]
        wanted = {"one_success": "counts_as_success", "one_failed": "counts_as_failure"}.get(
            step.condition.macro, ""
        )
        early = wanted and any(getattr(other.status, wanted) for other in done)
        if len(done) < len(before) and not early:
            return None
        if self._is_disabled(step):
            return Status.SKIPPED
        neighbours = step.parent.inner if step.parent is not None else {}
        facts = ConditionInputs(
            [other.status.counts_as_success for other in done],
            {name: other.outputs for name, other in neighbours.items() if other.outputs},
        )
        if not step.condition.holds(facts):
            return Status.CANCELLED
        stopped = self.failed and self._action is not FailureAction.FINISH_POSSIBLE
        return Status.CANCELLED if stopped or self.killed else Status.READY

    def _is_disabled(self, step: Step) -> bool:
        return step.path in self._disabled

    def _set_all(self, step: Step, status: Status) -> None:
        self._set(step, status)
        for other in step.inner.values():
            self._set_all(other, status)

    def _set(self, step: Step, status: Status) -> None:
        if step.status is not status:
            step.status = status
            self.changed(step)
