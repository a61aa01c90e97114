"""The coordinator's liveness file: its modification time shows that the event loop runs.

The loop touches the file; the supervisor checks its mtime. There is no file before the loop starts
and after it ends, because claiming and saving may wait for the job directory for minutes.
"""

from __future__ import annotations

import os
from contextlib import suppress

from submarine_runtime.suspend import monotonic

_NAME = "pulse"


class LivenessFile:
    """The liveness file of the coordinator that works in ``directory``."""

    def __init__(self, directory: str) -> None:
        self._path = os.path.join(directory, _NAME)
        self._last_change: tuple[int, float] | None = None

    def touch(self) -> None:
        """Set the modification time to now."""
        with suppress(OSError):  # A full disk is no reason to stop.
            os.close(os.open(self._path, os.O_WRONLY | os.O_CREAT, 0o600))
            os.utime(self._path)

    def remove(self) -> None:
        """Remove the file: no loop runs."""
        with suppress(OSError):
            os.unlink(self._path)

    def seconds_unchanged(self) -> float:
        """Return the seconds for which this process has seen no change; 0 if no loop runs.

        The clock stops during a suspend of the machine, as the loop does.
        """
        try:
            modified = os.stat(self._path).st_mtime_ns
        except OSError:
            self._last_change = None
            return 0.0
        if self._last_change is None or self._last_change[0] != modified:
            self._last_change = (modified, monotonic())
        return monotonic() - self._last_change[1]
