"""What a local run may be told beyond its workflow; the same words in the journal and on resume."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from submarine_workflows.runs import Concurrent, FailureAction

#: As many as Azkaban's executor runs of one flow (``flow.num.job.threads``).
MAX_PARALLEL = 10


@dataclass(frozen=True)
class RunOptions:
    """One run's wishes.

    Attributes
    ----------
    parameters
        Values of ``-p``: they win over the workflow's own ``config:``, not over a node's.
    failure_action
        What a failure means for the others; None: what the workflow says itself.
    disabled
        Paths of nodes that are skipped.
    timeout
        Seconds until the run is ended; None: no limit.
    notify
        Command that is told when the run does not end well.
    outputs
        Folder or URL of executed notebooks; empty: the run's own folder.
    notebook
        The notebook that the workflow is written in, where it does not say so itself.
    on_interrupt
        What becomes of the jobs of nodes that are stopped: ``cancel`` or ``detach``.
    """

    parameters: Mapping[str, str] = field(default_factory=dict)
    max_parallel: int = MAX_PARALLEL
    failure_action: FailureAction | None = None
    concurrent: Concurrent = Concurrent.SKIP
    disabled: frozenset[str] = frozenset()
    timeout: float | None = None
    notify: str = ""
    outputs: str = ""
    notebook: str = ""
    on_interrupt: str = "cancel"

    def to_json(self) -> dict[str, Any]:
        """What a resumed run takes over; how it is notified and limited is told anew."""
        return {
            "failure_action": str(self.failure_action or ""),
            "disabled": sorted(self.disabled),
            "outputs": self.outputs,
            "notebook": self.notebook,
        }
