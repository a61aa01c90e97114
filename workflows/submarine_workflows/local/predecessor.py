"""``--concurrent pipeline``: delay a node until the same node of the previous run has ended.

Azkaban's pipelining of level 1. The state is read from the journal of the previous run; a run whose
runner has ended delays no node.
"""

from __future__ import annotations

import time

from submarine_jobs.errors import UsageError
from submarine_workflows.runs import RunFolder, Status, view_of

#: Seconds between reads of the journal.
_FRESH = 0.4


class Predecessor:
    """The previous run, active when this one started."""

    def __init__(self, run: RunFolder) -> None:
        self.run = run.run
        self._folder = run
        self._read = float("-inf")
        self._open: dict[str, Status] = {}

    def holds_up(self, path: str) -> bool:
        """Return whether its node of that path has not ended."""
        now = time.monotonic()
        if now - self._read > _FRESH:
            self._read = now
            self._open = self._look()
        return path in self._open

    def _look(self) -> dict[str, Status]:
        try:
            view = view_of(self._folder)
        except UsageError:  # its files were deleted: nothing runs
            return {}
        if not view.alive:
            return {}
        return {node.path: node.status for node in view.nodes if not node.status.ended}
