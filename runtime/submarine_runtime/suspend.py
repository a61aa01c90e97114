"""Detect a suspend of this machine, and reject writes to the job directory until they are safe.

CLOCK_MONOTONIC stops while a machine is suspended and CLOCK_BOOTTIME does not (clock_gettime(2)),
so their difference grows by the length of each suspend. A process that was suspended may have been
replaced in the meantime. Deadlines that other processes rely on use ``monotonic`` of this module.
"""

from __future__ import annotations

import os
import time

#: A directory with one file for each process, named by its id: seconds for which the process is
#: treated as suspended. Tests set it, because a real suspend stops the test as well.
TEST_VARIABLE = "SUBMARINE_TEST_SUSPENDED"
#: Read once: the coordinator reads the clock several times for each heartbeat.
_directory = os.environ.get(TEST_VARIABLE)
#: Minimum growth of the difference, in seconds, that counts as a suspend. The clocks are read one
#: after the other, so a smaller growth can be a delay between the two reads.
MIN_SUSPEND = 0.5


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
    if not _directory:
        return 0.0
    try:
        with open(os.path.join(_directory, str(os.getpid())), encoding="ascii") as file:
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
        return grown if grown >= MIN_SUSPEND else 0.0

    def reset(self, until: float | None = None) -> None:
        """Measure from now, or from the time when ``suspended()`` was ``until``."""
        self._before = max(self._before, suspended() if until is None else until)
