"""What asks a run to end: SIGTERM, SIGINT and SIGHUP, told to whoever listens instead of killing.

Does not decide what then happens. Only the main thread of a process can have traps: elsewhere
they are set by nobody and signals do what they always did.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, Self

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Traps:
    """While this context lasts, signals are kept and told.

    Attributes
    ----------
    received
        The first signal that came, or None.
    count
        How many came: who sends a second one does not want to wait.
    listener
        Called in the main thread after each; must not raise and not wait.
    """

    def __init__(self) -> None:
        self.received: signal.Signals | None = None
        self.count = 0
        self.listener: Callable[[], None] | None = None
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                before = signal.getsignal(number)
                # nohup and a shell's & mean it when they have a signal ignored.
                if before is not signal.SIG_IGN or number is signal.SIGTERM:
                    self._before[number] = before
                    signal.signal(number, self._trap)
        return self

    def __exit__(self, *_: object) -> None:
        self.listener = None
        for number, before in self._before.items():
            signal.signal(number, before if before is not None else signal.SIG_DFL)
        self._before.clear()

    def heard(self) -> bool:
        """Whether somebody wants an end."""
        return self.received is not None

    def _trap(self, number: int, _frame: FrameType | None) -> None:
        self.received = self.received or signal.Signals(number)
        self.count += 1
        if self.listener is not None:
            self.listener()
