"""What went wrong with jobs in threads that cells have started, where no cell fails by it.

Python prints such an error and forgets it; a headless run must not be green because of that. Keeps
our own errors only, and the newest of them. Does not change what is printed.
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from submarine_jobs.errors import SubmarineError
    from submarine_magics.execution.executions import Execution

_MAX_KEPT = 50
_kept: deque[tuple[SubmarineError, Execution | None]] = deque(maxlen=_MAX_KEPT)
_before: list[Callable[[Any], Any]] = []


def listen(latest: Callable[[], Execution | None]) -> None:
    """Hear of the errors of this process's threads from now on.

    Parameters
    ----------
    latest
        Tells the cell that was begun last.
    """
    if _before:
        return
    _before.append(threading.excepthook)

    def hear(args: Any) -> None:
        errors = sys.modules.get("submarine_jobs.errors")
        if errors is not None and isinstance(args.exc_value, errors.SubmarineError):
            _kept.append((args.exc_value, latest()))
        _before[0](args)

    threading.excepthook = hear


def some() -> bool:
    """Whether there are any."""
    return bool(_kept)


def take() -> list[tuple[SubmarineError, Execution | None]]:
    """Those that were not taken yet, the oldest first."""
    found = []
    while _kept:
        found.append(_kept.popleft())
    return found
