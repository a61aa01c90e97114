"""Convert signals that request the end of a run to events of the runner."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def heeding(hear: Callable[[int], None]) -> Iterator[None]:
    """Call ``hear`` from the signal handler; no effect outside the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before: dict[signal.Signals, Any] = {}
    try:
        for number in _SIGNALS:
            # Ignored signals stay ignored, as for nohup.
            if signal.getsignal(number) is not signal.SIG_IGN:
                before[number] = signal.signal(number, lambda which, frame: hear(which))
        yield
    finally:
        for number, handler in before.items():
            with suppress(TypeError, ValueError):
                signal.signal(number, handler)
