"""The coordinator's pulse: a file whose time says that its loop still turns.

Beaten by the loop, felt by the supervisor. Before the loop begins and after it has ended there is
none: claiming and saving may wait for the job directory for minutes.
"""

from __future__ import annotations

import os
from contextlib import suppress

from submarine_runtime.suspend import monotonic

_NAME = "pulse"


class Pulse:
    """The pulse of the coordinator that works in ``directory``."""

    def __init__(self, directory: str) -> None:
        self._path = os.path.join(directory, _NAME)
        self._seen: tuple[int, float] | None = None

    def beat(self) -> None:
        """The loop turns."""
        with suppress(OSError):  # a full disk is no reason to stop
            os.close(os.open(self._path, os.O_WRONLY | os.O_CREAT, 0o600))
            os.utime(self._path)

    def stop(self) -> None:
        """There is no loop."""
        with suppress(OSError):
            os.unlink(self._path)

    def silence(self) -> float:
        """Seconds for which this process has seen no new beat; 0 where no loop runs.

        Measured with a clock that stops during a suspend of the machine, as the loop does.
        """
        try:
            beat = os.stat(self._path).st_mtime_ns
        except OSError:
            self._seen = None
            return 0.0
        if self._seen is None or self._seen[0] != beat:
            self._seen = (beat, monotonic())
        return monotonic() - self._seen[1]
