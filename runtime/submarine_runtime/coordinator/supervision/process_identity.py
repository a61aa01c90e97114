"""Identify the application master's JVM, the parent of the supervisor, and detect its end.

A process is identified by its number and its start time, because the kernel reuses numbers. This
module ends no process.
"""

from __future__ import annotations

import os
import re

_IDENTITY = re.compile(r"(\d{1,19}):(\d{1,19})\Z")


def start_time(pid: int) -> str | None:
    """Return when a process started, in the kernel's ticks; None if it has ended."""
    try:
        with open(f"/proc/{pid}/stat", encoding="latin-1") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else fields[19]


def parent_identity() -> str:
    """Return ``PID:START`` of this process's parent; empty if the parent is unknown.

    The supervisor calls this when it starts. A coordinator must not determine the parent of its
    supervisor: after the end of the application master that is another process.
    """
    pid = os.getppid()
    started = start_time(pid) if pid > 1 else None
    return f"{pid}:{started}" if started else ""


class ProcessIdentity:
    """A process, identified by the result of ``parent_identity``."""

    def __init__(self, identity: str) -> None:
        match = _IDENTITY.match(identity)
        self._pid = int(match[1]) if match else 0
        self._started = match[2] if match else ""

    def has_ended(self) -> bool:
        """Return whether the process has ended; False if it is unknown."""
        return bool(self._pid) and start_time(self._pid) != self._started
