"""Live display of an Azkaban execution, polled while it runs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from submarine_jobs.frontends import Frontend, Outcome
from submarine_runtime.translation import _
from submarine_workflows.azkaban import RUN_PREFIX, run_url
from submarine_workflows.azkaban.api import Azkaban, Execution, NodeExecution
from submarine_workflows.display import NextCommand, NodeState, RunState, run_output
from submarine_workflows.model import Kind, Node, Workflow
from submarine_workflows.notebook.live_display import distant

#: Seconds between requests.
EVERY = 5.0


@dataclass(frozen=True)
class AzkabanRun:
    """Source of an Azkaban execution for ``RunWatcher``."""

    azkaban: Azkaban
    execution: int
    command: str

    @property
    def name(self) -> str:
        """Id of the run."""
        return f"{RUN_PREFIX}{self.execution}"

    def stamp(self) -> tuple[object, bool]:
        """Return a new stamp every few seconds, because Azkaban does not report changes."""
        return int(time.monotonic() / EVERY), True

    def render(self) -> tuple[dict[str, Any], bool]:
        """Return the current output, and whether it is final."""
        found = self.azkaban.execution(self.execution)
        return output_of(found, self.azkaban.url, self.command), found.over


def show_execution(
    azkaban: Azkaban, found: Execution, frontend: Frontend, value: object
) -> Outcome:
    """Show an execution in a notebook, updated while it runs."""
    bundle = output_of(found, azkaban.url, frontend.command)
    if not found.over:
        update = frontend.add_output(bundle)
        if update is not None:
            distant.watch(AzkabanRun(azkaban, found.execid, frontend.command), update)
            return Outcome(value=value)
    html, text = bundle.pop("text/html"), bundle.pop("text/plain")
    return Outcome(text, html, value, mime=bundle)


def output_of(found: Execution, url: str, command: str) -> dict[str, Any]:
    """Return the output of an execution by MIME type, with next commands."""
    workflow = Workflow(found.flow, tuple(_node(node) for node in found.nodes))
    states = {
        node.path: NodeState(node.status, node.started, node.ended, node.attempt)
        for node in found.walk()
    }
    run = f"{RUN_PREFIX}{found.execid}"
    ended = found.ended if found.over else None
    begun = found.started or found.submitted
    state = RunState(run, found.status, begun, ended, states, url=url)
    return run_output(workflow, state, _next_steps(found, run, url, command))


def _node(node: NodeExecution) -> Node:
    name = node.path.rpartition(":")[2]
    kind = Kind.FLOW if node.nodes else Kind.OTHER
    return Node(
        name, kind, node.type, depends_on=node.depends_on, nodes=tuple(map(_node, node.nodes))
    )


def _next_steps(found: Execution, run: str, url: str, command: str) -> Sequence[NextCommand]:
    own = f"{command} workflow"
    failed = next((node.path for node in found.walk() if node.status == "FAILED"), "")
    steps = [NextCommand(f"{own} logs {run} {failed}".rstrip(), _("output of its commands"))]
    if not found.over:
        steps.append(NextCommand(f"{own} cancel {run}", _("end it")))
    steps.append(NextCommand(f"{command} list --workflow-run {run}", _("its jobs")))
    return [*steps, NextCommand(run_url(url, found.execid), _("in Azkaban"))]
