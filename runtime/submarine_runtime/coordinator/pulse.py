"""The coordinator's pulse: a file whose time says that its loop still turns.

Beaten by the loop, felt by the supervisor. Before the loop begins and after it has ended there is
none: claiming and saving may wait for the job directory for minutes.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress

_NAME = "pulse"


class Pulse:
    """The pulse of the coordinator that works in ``directory``."""

    def __init__(self, directory: str) -> None:
        self._path = os.path.join(directory, _NAME)

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
        """Seconds since the last beat; 0 where no loop runs."""
        try:
            return max(0.0, time.time() - os.stat(self._path).st_mtime)
        except OSError:
            return 0.0
