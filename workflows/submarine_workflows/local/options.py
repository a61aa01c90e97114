"""Options of a local run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from submarine_workflows.runs import Concurrent, FailureAction

#: The default of Azkaban's executor (``flow.num.job.threads``).
MAX_PARALLEL = 10


@dataclass(frozen=True)
class RunOptions:
    """Options of one run.

    Attributes
    ----------
    parameters
        Values of ``-p``: they override the workflow's ``config:``, not that of a node.
    failure_action
        Effect of a failure on other nodes; None: as the workflow specifies.
    disabled
        Paths of skipped nodes.
    timeout
        Seconds until the run is stopped; None: no limit.
    notify
        Command to call when the run does not succeed.
    outputs
        Folder or URL of executed notebooks; empty: the folder of the run.
    notebook
        Notebook that contains the workflow, if the workflow does not name it.
    on_interrupt
        Action for the jobs of stopped nodes: ``cancel`` or ``detach``.
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
        """Return the options that a resumed run keeps. Notification and limits are given again."""
        return {
            "failure_action": str(self.failure_action or ""),
            "disabled": sorted(self.disabled),
            "outputs": self.outputs,
            "notebook": self.notebook,
        }
