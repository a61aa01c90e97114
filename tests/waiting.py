"""Wait for what a test needs: for a condition, with a generous limit, and never for a fixed time.

A busy machine may take a minute for what takes a second elsewhere, so no limit is tight.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
#: Long enough for two cores on which other tests run; a test that works never waits so long.
PATIENCE = 180.0
#: Seconds between two checks: the longer a check takes, the longer is the pause after it.
_PAUSE, _MAX_PAUSE = 0.01, 0.2


def until(
    condition: Callable[[], T | None],
    what: str | Callable[[], object] = "what the test waits for",
    seconds: float = PATIENCE,
) -> T:
    """Wait for a condition.

    Parameters
    ----------
    what
        What is waited for; or a function, for what is known only when it never came.

    Returns
    -------
    What the condition gave, once that is true.

    Raises
    ------
    AssertionError
        After ``seconds``.
    """
    deadline = time.monotonic() + seconds
    while True:
        began = time.monotonic()
        if found := condition():
            return found
        now = time.monotonic()
        if now > deadline:
            raise AssertionError(f"not within {seconds:g} s: {what() if callable(what) else what}")
        time.sleep(min(max(_PAUSE, 2 * (now - began)), _MAX_PAUSE))
