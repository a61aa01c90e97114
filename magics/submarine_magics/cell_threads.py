"""Threads that still run the notebook's own code, and so may yet start a job.

A script ends when such threads have ended, and so does a headless run. As in a script, daemon
threads are nobody's concern; nor are those of libraries, and the idle ones of a pool. Only looks.
"""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

    from IPython.core.interactiveshell import InteractiveShell


def threads_of_cells(shell: InteractiveShell) -> list[threading.Thread]:
    """The threads that are in the middle of a function of the notebook, daemons left out."""
    others = [
        thread
        for thread in threading.enumerate()
        if not thread.daemon and thread not in (threading.main_thread(), threading.current_thread())
    ]
    frames = sys._current_frames() if others else {}
    return [thread for thread in others if _in_cell(frames.get(thread.ident or 0), shell)]


def _in_cell(frame: FrameType | None, shell: InteractiveShell) -> bool:
    """Whether a function that a cell has defined is on the stack."""
    while frame is not None:
        if frame.f_globals is shell.user_global_ns:
            return True
        frame = frame.f_back
    return False
