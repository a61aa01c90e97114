"""Signals that ask a runner to end become events of its own; what they mean is the runner's."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def heeding(hear: Callable[[int], None]) -> Iterator[None]:
    """Tell ``hear`` of signals, from within the handler; only where this is the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before: dict[signal.Signals, Any] = {}
    try:
        for number in _SIGNALS:
            # One that is ignored stays so: nohup.
            if signal.getsignal(number) is not signal.SIG_IGN:
                before[number] = signal.signal(number, lambda which, frame: hear(which))
        yield
    finally:
        for number, handler in before.items():
            with suppress(TypeError, ValueError):
                signal.signal(number, handler)
