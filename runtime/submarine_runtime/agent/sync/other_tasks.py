"""Files of other tasks that were restored in a checkpoint directory and are not this task's own.

Each task uploads its own files only: otherwise a gang of N tasks would store N copies of each.
"""

from __future__ import annotations

import os
from typing import Iterable, Mapping

from submarine_runtime.snapshots import FileState, state_of


class OtherTasksFiles:
    """The files of other tasks that the program has not changed.

    Parameters
    ----------
    root
        Checkpoint directory of the task.
    """

    def __init__(self, root: str) -> None:
        self._root = root
        self._states: dict[str, FileState] = {}

    def remember(self, paths: Iterable[str]) -> None:
        """Replace the files by those at ``paths`` below the directory."""
        found = {path: state_of(os.path.join(self._root, path)) for path in paths}
        self._states = {path: state for path, state in found.items() if state is not None}

    def own(self, files: Mapping[str, FileState]) -> dict[str, FileState]:
        """Return ``files`` of the checkpoint directory without those of other tasks."""
        return {path: seen for path, seen in files.items() if self._states.get(path) != seen}

    def holds(self, path: str) -> bool:
        """Return whether an absolute path is an unchanged file of another task."""
        known = self._states.get(os.path.relpath(path, self._root))
        return known is not None and state_of(path) == known
