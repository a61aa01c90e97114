"""The process that started our supervisor, the application master's JVM: whether it is still there.

Known by its start time as well, as a process number may be given anew. Ends nothing.
"""

from __future__ import annotations

import os

from submarine_runtime.coordinator.local_placer import start_time


class Master:
    """Our parent's parent, as it is when this is made."""

    def __init__(self) -> None:
        self._pid = _parent_of(os.getppid())
        self._started = start_time(self._pid) if self._pid > 1 else None

    def gone(self) -> bool:
        """Whether it has ended; False where it was never known."""
        return self._started is not None and start_time(self._pid) != self._started


def _parent_of(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/stat", encoding="latin-1") as file:
            return int(file.read().rpartition(")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return 0
