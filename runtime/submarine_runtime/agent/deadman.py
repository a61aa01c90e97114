"""Kills the program when the coordinator has not been heard for too long, whatever else hangs.

A thread that sleeps until the moment that counts. The moment is ``lost_after`` seconds behind the
*sending* of the last heartbeat that was acknowledged, so it comes before the coordinator's own.
"""

from __future__ import annotations

import threading
import time
from typing import Callable


class DeadMan:
    """The thread; asleep nearly always.

    Parameters
    ----------
    on_silence
        Called in the thread once for each silence.
    """

    def __init__(self, on_silence: Callable[[], None]) -> None:
        self._on_silence = on_silence
        self._moment: float | None = None
        self._changed = threading.Condition()
        self._over = False
        self._thread = threading.Thread(target=self._run, name="deadman", daemon=True)
        #: Whether a silence has been too long and nothing was heard since.
        self.fired = False

    def heard(self, sent: float, lost_after: float) -> None:
        """What was sent at ``sent`` (monotonic) has been acknowledged."""
        with self._changed:
            first, self._moment = self._moment is None, sent + lost_after
            self.fired = self.fired and time.monotonic() >= self._moment
            if first:
                self._changed.notify()
        if first and self._thread.ident is None:
            self._thread.start()

    def stop(self) -> None:
        """Watch no more."""
        with self._changed:
            self._over = True
            self._changed.notify()

    @property
    def moment(self) -> float | None:
        """When (monotonic) the program would be killed; None before anything was heard."""
        return self._moment

    def _run(self) -> None:
        while True:
            with self._changed:
                if self._over:
                    return
                now = time.monotonic()
                due = self._moment is not None and now >= self._moment and not self.fired
                if not due:
                    # Once it has fired it looks again whether the silence is over.
                    left = (self._moment or now) - now
                    self._changed.wait(left if left > 0 else 1.0)
                    continue
                self.fired = True
            self._on_silence()
