"""Live display of a local run, updated when its journal changes."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from submarine_runtime.translation import _
from submarine_workflows.display import NextCommand, NodeState, RunState, run_output
from submarine_workflows.runs import RunFolder, RunView, Status, view_of


def state_of(view: RunView) -> RunState:
    """Return the displayed state of a run."""
    # A node that waits in a resumed run shows no earlier attempt.
    nodes = {
        node.path: NodeState(str(node.status), node.started, node.ended, node.attempt, node.reason)
        if node.status is not Status.READY
        else NodeState(str(node.status))
        for node in view.nodes
    }
    ended = view.ended if not view.alive else None
    return RunState(view.run, str(view.status), view.started or None, ended, nodes, view.reason)


def output_of(view: RunView, command: str) -> dict[str, Any]:
    """Return the output of a run by MIME type, with next commands."""
    return run_output(view.workflow, state_of(view), _next_steps(view, command))


def _next_steps(view: RunView, command: str) -> Sequence[NextCommand]:
    """Refer to the run by id, not by workflow name: outputs are read long after the run."""
    own, run = f"{command} workflow", view.run
    jobs = NextCommand(f"{command} list --workflow-run {run}", _("its jobs"))
    failed = next((n.path for n in view.nodes if n.status in (Status.FAILED, Status.KILLED)), "")
    logs = NextCommand(f"{own} logs {run} {failed}".rstrip(), _("output of its commands"))
    if view.alive:
        return [logs, NextCommand(f"{own} cancel {run}", _("end it")), jobs]
    if view.status is Status.SUCCEEDED:
        return [logs, jobs]
    return [logs, NextCommand(f"{own} run --resume {run}", _("resume it")), jobs]


@dataclass(frozen=True)
class LocalRun:
    """Source of a local run for ``RunWatcher``."""

    run: RunFolder
    command: str

    @property
    def name(self) -> str:
        """Id of the run."""
        return self.run.run

    def stamp(self) -> tuple[object, bool]:
        """Return a stamp that changes with the journal, and whether the run is active."""
        alive = self.run.alive
        with suppress(OSError):
            status = self.run.journal.stat()
            return (status.st_mtime_ns, status.st_size, alive), alive
        return None, alive

    def render(self) -> tuple[dict[str, Any], bool]:
        """Return the current output, and whether it is final."""
        view = view_of(self.run)
        return output_of(view, self.command), not view.alive
