"""Ship the TensorBoard files of one attempt to the job directory while they grow.

``syncing`` decides when to ship; ``growing`` defines the form of the pieces.
"""

from __future__ import annotations

import os
from typing import Callable

from submarine_runtime.protocol import layout
from submarine_runtime.snapshots import Growing, Reader, Seen, look, shipped_lengths, task_directory
from submarine_runtime.storage import Store


class BoardFiles:
    """The files below one directory.

    Parameters
    ----------
    root
        The task's TensorBoard directory on the local disk.
    check
        Called between blocks; raises to end a long upload.
    """

    def __init__(
        self,
        store: Store,
        root: str,
        task: str,
        now: tuple[int, int],
        check: Callable[[], None],
    ) -> None:
        self._store, self._root, self._task, self._now = store, root, task, now
        self._check = check
        self._growing: Growing | None = None
        self._before: dict[str, Seen] = {}

    def ship(self, *, last: bool) -> bool:
        """Ship what is new; return whether something was shipped, so the store is available.

        Parameters
        ----------
        last
            The program has ended: ship files that have just changed as well.

        Raises
        ------
        StoreError
            If the store failed; a further call continues.
        """
        try:
            files = look(self._root)
        except OSError:
            return False
        if not files and self._growing is None:
            return False
        if self._growing is None:
            shipped = {}
            if self._now != (1, 1):
                shipped = shipped_lengths(self._store, task_directory(self._task))
            name = layout.attempt_directory(layout.GROWING, self._task, *self._now)
            reader = Reader(lambda path: os.path.join(self._root, path), self._check)
            self._growing = Growing(self._store, name, self._root, reader, shipped)
        before, self._before = self._before, files
        self._growing.ship(files, files if last else before)
        return files != before
