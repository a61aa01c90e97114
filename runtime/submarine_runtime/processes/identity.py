"""Identify a process of this machine by its number, its start time and the boot.

The kernel reuses process numbers, so a number alone may name another process later.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

from submarine_runtime.processes.usage import read_process

T = TypeVar("T", bound="ProcessIdentity")
_TEXT = re.compile(r"(\d{1,19}):(\d{1,19})\Z")


@lru_cache(maxsize=1)
def boot_id() -> str:
    """Return the kernel's id of this boot; empty if it is unknown."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


@dataclass(frozen=True)
class ProcessIdentity:
    """A process; ``str()`` is ``PID:START``, which ``parse`` reads during the same boot.

    Attributes
    ----------
    pid
        Process id.
    started
        Clock ticks from boot to the start of the process.
    boot
        The kernel's id of the boot.
    """

    pid: int
    started: int
    boot: str

    @classmethod
    def of(cls: type[T], pid: int) -> T | None:
        """Return the identity of the running process ``pid``; None if there is none.

        A zombie does not run, unless other threads of it still hold its ports and files.
        """
        process = read_process(pid)
        if process is None or (process.zombie and not _has_threads(pid)):
            return None
        return cls(pid, process.start, boot_id())

    @classmethod
    def parse(cls: type[T], text: str) -> T | None:
        """Return the process that ``PID:START`` names; None if the text is malformed."""
        match = _TEXT.match(text)
        return cls(int(match[1]), int(match[2]), boot_id()) if match else None

    def __str__(self) -> str:
        return f"{self.pid}:{self.started}"

    @property
    def alive(self) -> bool:
        """Whether the process still runs."""
        return type(self).of(self.pid) == self

    def signal(self, number: int) -> bool:
        """Send a signal if the process still runs, and return whether it was sent."""
        if not self.alive:
            return False
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            return False
        return True


def _has_threads(pid: int) -> bool:
    try:
        return len(os.listdir(f"/proc/{pid}/task")) > 1
    except OSError:
        return False
