"""``--concurrent pipeline``: a node waits until the same node of the earlier run has ended.

Azkaban's pipelining of level 1. Reads the earlier run's journal, and waits for no runner that is
gone.
"""

from __future__ import annotations

import time

from submarine_jobs.errors import UsageError
from submarine_workflows.runs import RunFolder, Status, view_of

#: Seconds for which what was read is believed.
_FRESH = 0.4


class Predecessor:
    """The run that was under way when this one started."""

    def __init__(self, run: RunFolder) -> None:
        self.run = run.run
        self._folder = run
        self._read = float("-inf")
        self._open: dict[str, Status] = {}

    def holds_up(self, path: str) -> bool:
        """Whether its node of that path may still run."""
        now = time.monotonic()
        if now - self._read > _FRESH:
            self._read = now
            self._open = self._look()
        return path in self._open

    def _look(self) -> dict[str, Status]:
        try:
            view = view_of(self._folder)
        except UsageError:  # its files are gone: nothing runs there
            return {}
        if not view.alive:
            return {}
        return {node.path: node.status for node in view.nodes if not node.status.ended}
