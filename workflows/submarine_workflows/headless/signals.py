"""Record SIGTERM, SIGINT and SIGHUP instead of ending the process.

Handlers can be set only in the main thread; in other threads signals are not handled.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, Self

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class SignalRecorder:
    """Context in which signals are recorded and reported.

    Attributes
    ----------
    received
        The first received signal, or None.
    count
        Number of received signals: a second one requests an immediate end.
    listener
        Called in the main thread after each signal; must neither raise nor block.
    """

    def __init__(self) -> None:
        self.received: signal.Signals | None = None
        self.count = 0
        self.listener: Callable[[], None] | None = None
        self._previous_handlers: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                previous = signal.getsignal(number)
                # Signals ignored by nohup or a shell's & stay ignored.
                if previous is not signal.SIG_IGN or number is signal.SIGTERM:
                    self._previous_handlers[number] = previous
                    signal.signal(number, self._record)
        return self

    def __exit__(self, *_: object) -> None:
        self.listener = None
        for number, previous in self._previous_handlers.items():
            signal.signal(number, previous if previous is not None else signal.SIG_DFL)
        self._previous_handlers.clear()

    def was_signalled(self) -> bool:
        """Return whether a signal was received."""
        return self.received is not None

    def _record(self, number: int, _frame: FrameType | None) -> None:
        self.received = self.received or signal.Signals(number)
        self.count += 1
        if self.listener is not None:
            self.listener()
