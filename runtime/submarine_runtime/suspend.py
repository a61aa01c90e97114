"""Detect a suspend of this machine, and stop writes to the job directory until they are safe.

CLOCK_MONOTONIC stops while a machine is suspended and CLOCK_BOOTTIME does not (clock_gettime(2)).
Their difference therefore grows by the length of each suspend. A process that was suspended may
have been replaced meanwhile. Deadlines that other processes rely on use ``monotonic`` of this
module.
"""

from __future__ import annotations

import os
import threading
import time
from typing import Callable

#: A directory with one file for each process, named by its id: seconds for which the process is
#: treated as suspended. Tests set it, because a real suspend stops the test as well.
TEST_VARIABLE = "SUBMARINE_TEST_SUSPENDED"
#: Growth of the difference in seconds that counts as a suspend. Two clocks cannot be read at once,
#: so a smaller one may be a process that had to wait for the processor.
LEAST = 0.5


def monotonic() -> float:
    """Return seconds of CLOCK_MONOTONIC."""
    return time.monotonic() - _injected()


def suspended() -> float:
    """Return the seconds for which this machine has been suspended since it started.

    Always 0 where the system has no CLOCK_BOOTTIME (it is specific to Linux).
    """
    number = getattr(time, "CLOCK_BOOTTIME", None)
    if number is None:
        return _injected()
    # CLOCK_MONOTONIC is read last: a delay between the two calls then makes the result smaller.
    boottime = time.clock_gettime(number)
    return boottime - time.monotonic() + _injected()


def _injected() -> float:
    directory = os.environ.get(TEST_VARIABLE)
    if not directory:
        return 0.0
    try:
        with open(os.path.join(directory, str(os.getpid())), encoding="ascii") as file:
            return float(file.read() or 0.0)
    except (OSError, ValueError):
        return 0.0


class SuspendMeter:
    """Measures suspends from its creation or from the last ``reset``."""

    def __init__(self) -> None:
        self._before = max(suspended() for _ in range(3))

    def seconds(self) -> float:
        """Return for how long the machine has been suspended since then; 0 for no suspend."""
        grown = suspended() - self._before
        return grown if grown >= LEAST else 0.0

    def reset(self, until: float | None = None) -> None:
        """Count from now, or from the moment at which ``suspended()`` was ``until``."""
        self._before = max(self._before, suspended() if until is None else until)


class WriteGate:
    """Refuses writes after a suspend until another process or the job directory confirms them.

    Parameters
    ----------
    judge
        Called after a suspend, in the thread that wants to write. Returns whether this process may
        go on writing; raises StoreError while that cannot be found out. None: ``confirm`` is called
        by the thread that talks to the coordinator.
    """

    def __init__(self, judge: Callable[[], bool] | None = None) -> None:
        self._meter = SuspendMeter()
        self._judge = judge
        self._lock = threading.RLock()
        self._judging = self._superseded = False

    @property
    def closed(self) -> bool:
        """Whether writes are refused now."""
        return self._superseded or self._meter.seconds() > 0.0

    def confirm(self, until: float) -> None:
        """Allow writes: this process was still wanted when ``suspended()`` was ``until``."""
        self._meter.reset(until)

    def check(self) -> None:
        """Return if writes are allowed.

        Raises
        ------
        StoreError
            If they are not. It is transient unless ``judge`` has returned False.
        """
        if not self.closed:
            return
        from submarine_runtime.storage import StoreError, UnconfirmedError

        with self._lock:
            if self._judging:
                return  # the reads and writes of the judgement itself
            if not self._superseded and self._judge is not None:
                seen = suspended()
                self._judging = True
                try:
                    self._superseded = not self._judge()
                finally:
                    self._judging = False
                if not self._superseded:
                    self._meter.reset(seen)
            if self._superseded:
                raise StoreError("this process was suspended and has been replaced")
            if self.closed:
                raise UnconfirmedError(
                    "this machine was suspended; the coordinator has not confirmed the task yet",
                    True,
                )
