"""Threads that cells have started: those that may still start a job, and errors raised in them.

A headless run ends when such threads have ended, as a script does. Daemon threads, threads of
libraries and idle threads of a pool are ignored, and so are all threads of a notebook that does not
use jobs. Python prints an error in a thread and continues; a headless run reports it as a failure.
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from submarine_jobs.client import any_started

if TYPE_CHECKING:
    from types import FrameType

    from IPython.core.interactiveshell import InteractiveShell

    from submarine_jobs.errors import SubmarineError
    from submarine_magics.execution.executions import Execution

_MAX_ERRORS = 50
_errors: deque[tuple[SubmarineError, Execution | None]] = deque(maxlen=_MAX_ERRORS)
_previous_hook: list[Callable[[Any], Any]] = []


def threads_of_cells(shell: InteractiveShell) -> list[threading.Thread]:
    """Return the non-daemon threads that execute a function of the notebook."""
    if not (any_started() or _uses_jobs(shell)):
        return []
    others = [
        thread
        for thread in threading.enumerate()
        if not thread.daemon and thread not in (threading.main_thread(), threading.current_thread())
    ]
    frames = sys._current_frames() if others else {}
    return [thread for thread in others if _in_cell(frames.get(thread.ident or 0), shell)]


def _uses_jobs(shell: InteractiveShell) -> bool:
    """Whether a variable of the notebook is ``submarine_jobs`` or one of its functions."""
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


def record_thread_errors(latest: Callable[[], Execution | None]) -> None:
    """Record Submarine errors in threads of this process; the newest ``_MAX_ERRORS`` are kept.

    Python's message about the error is printed as before.

    Parameters
    ----------
    latest
        Returns the cell that was started last.
    """
    if _previous_hook:
        return
    _previous_hook.append(threading.excepthook)

    def hook(args: Any) -> None:
        errors = sys.modules.get("submarine_jobs.errors")
        if errors is not None and isinstance(args.exc_value, errors.SubmarineError):
            _errors.append((args.exc_value, latest()))
        _previous_hook[0](args)

    threading.excepthook = hook


def has_thread_errors() -> bool:
    """Whether ``take_thread_errors`` returns any."""
    return bool(_errors)


def take_thread_errors() -> list[tuple[SubmarineError, Execution | None]]:
    """Remove and return the recorded errors, the oldest first."""
    found = []
    while _errors:
        found.append(_errors.popleft())
    return found
