"""Kill the program after a long silence of the coordinator, even if other threads hang.

The thread compares the time with the deadline each second. The deadline is ``lost_after`` seconds
after the *sending* of the last acknowledged heartbeat, so it is earlier than the coordinator's own.
A suspend of the machine counts as silence, but leaves some seconds to reconnect: the coordinator
may have been suspended too.
"""

from __future__ import annotations

import threading
from typing import Callable

from submarine_runtime.suspend import SuspendMeter, monotonic

#: Seconds between two checks. A wait does not count suspended time, so a longer one would end late.
CHECK_SECONDS = 1.0
#: Seconds after a suspend in which the coordinator can still confirm the task.
AFTER_SUSPEND = 10.0


class SilenceWatchdog:
    """The thread.

    Parameters
    ----------
    on_silence
        Called in the thread once for each silence.
    """

    def __init__(self, on_silence: Callable[[], None]) -> None:
        self._on_silence = on_silence
        self._deadline: float | None = None
        self._meter = SuspendMeter()
        self._changed = threading.Condition()
        self._over = False
        self._thread = threading.Thread(target=self._run, name="silence-watchdog", daemon=True)
        #: Whether a silence was too long and has not ended.
        self.fired = False

    def acknowledged(self, sent: float, lost_after: float) -> None:
        """Record that a line sent at ``sent`` (monotonic) was acknowledged."""
        with self._changed:
            first, self._deadline = self._deadline is None, sent + lost_after
            self.fired = self.fired and monotonic() >= self._deadline
            if first:
                self._changed.notify()
        if first and self._thread.ident is None:
            self._thread.start()

    def stop(self) -> None:
        """Stop the thread."""
        with self._changed:
            self._over = True
            self._changed.notify()

    @property
    def deadline(self) -> float | None:
        """Time (monotonic) at which the program is killed; None before the first ack."""
        return self._deadline

    def _run(self) -> None:
        while True:
            with self._changed:
                if self._over:
                    return
                now = monotonic()
                if self._meter.seconds() and self._deadline is not None:
                    left = self._deadline - now
                    earlier = now + min(left, AFTER_SUSPEND)
                    self._deadline = max(earlier, self._deadline - self._meter.seconds())
                    self._meter.reset()
                due = self._deadline is not None and now >= self._deadline and not self.fired
                if not due:
                    # After the callback, check again whether the silence is over.
                    left = (self._deadline or now) - now
                    self._changed.wait(min(left, CHECK_SECONDS) if left > 0 else CHECK_SECONDS)
                    continue
                self.fired = True
            self._on_silence()
