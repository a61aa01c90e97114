"""A run of this machine as pictures show it, and whether there is news of it in its journal."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from submarine_workflows.display import NodeState, RunState, Step, of_run
from submarine_workflows.runs import RunFolder, RunView, Status, view_of


def state_of(view: RunView) -> RunState:
    """A run, as pictures show it."""
    # Of one that waits, in a run that goes on again, no earlier attempt is told.
    nodes = {
        node.path: NodeState(str(node.status), node.started, node.ended, node.attempt, node.reason)
        if node.status is not Status.READY
        else NodeState(str(node.status))
        for node in view.nodes
    }
    ended = view.ended if not view.alive else None
    return RunState(view.run, str(view.status), view.started or None, ended, nodes, view.reason)


def picture_of(view: RunView, command: str) -> dict[str, Any]:
    """MIME type -> data of a run, with what may be done next."""
    return of_run(view.workflow, state_of(view), _next_steps(view, command))


def _next_steps(view: RunView, command: str) -> Sequence[Step]:
    """By the run's id and not by the workflow's name: outputs are read for a long time."""
    own, run = f"{command} workflow", view.run
    jobs = Step(f"{command} list --workflow-run {run}", "its jobs")
    failed = next((n.path for n in view.nodes if n.status in (Status.FAILED, Status.KILLED)), "")
    logs = Step(f"{own} logs {run} {failed}".rstrip(), "what its commands wrote")
    if view.alive:
        return [logs, Step(f"{own} cancel {run}", "end it"), jobs]
    if view.status is Status.SUCCEEDED:
        return [logs, jobs]
    return [logs, Step(f"{own} run --resume {run}", "go on from there"), jobs]


@dataclass(frozen=True)
class LocalRun:
    """What ``RunWatcher`` looks at."""

    run: RunFolder
    command: str

    @property
    def name(self) -> str:
        """The run's id."""
        return self.run.run

    def stamp(self) -> tuple[object, bool]:
        """Something that is another when there is news, and whether the run goes on."""
        alive = self.run.alive
        with suppress(OSError):
            status = self.run.journal.stat()
            return (status.st_mtime_ns, status.st_size, alive), alive
        return None, alive

    def picture(self) -> tuple[dict[str, Any], bool]:
        """The picture now, and whether nothing follows."""
        view = view_of(self.run)
        return picture_of(view, self.command), not view.alive
