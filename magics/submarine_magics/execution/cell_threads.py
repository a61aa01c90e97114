"""Threads that still run the notebook's own code, and so may yet start a job.

A script ends when such threads have ended, and so does a headless run. As in a script, daemon
threads are nobody's concern; nor are those of libraries, the idle ones of a pool, and all threads
of a notebook that has nothing to do with jobs. Only looks.
"""

from __future__ import annotations

import sys
import threading
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING

from submarine_jobs.client import started_jobs as started

if TYPE_CHECKING:
    from types import FrameType

    from IPython.core.interactiveshell import InteractiveShell


def threads_of_cells(shell: InteractiveShell) -> list[threading.Thread]:
    """The threads that are in the middle of a function of the notebook, daemons left out."""
    if not (started.anything() or _knows_jobs(shell)):
        return []
    others = [
        thread
        for thread in threading.enumerate()
        if not thread.daemon and thread not in (threading.main_thread(), threading.current_thread())
    ]
    frames = sys._current_frames() if others else {}
    return [thread for thread in others if _in_cell(frames.get(thread.ident or 0), shell)]


def _knows_jobs(shell: InteractiveShell) -> bool:
    """Whether the notebook has imported what starts jobs, by whatever name."""
    own = "submarine_jobs"
    return any(
        (isinstance(value, ModuleType) and value.__name__ == own)
        or (isinstance(value, FunctionType) and value.__module__ == own)
        for value in list(shell.user_ns.values())
    )


def _in_cell(frame: FrameType | None, shell: InteractiveShell) -> bool:
    """Whether a function that a cell has defined is on the stack."""
    while frame is not None:
        if frame.f_globals is shell.user_global_ns:
            return True
        frame = frame.f_back
    return False
