"""Context managers that ignore, allow or defer an interrupt (SIGINT) in the main thread.

In other threads, which receive no signals, they do nothing.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType


@contextlib.contextmanager
def ignore_interrupts() -> Iterator[None]:
    """Ignore interrupts, and flush stdout at the end."""
    with _on_interrupt(signal.SIG_IGN):
        yield
    sys.stdout.flush()


@contextlib.contextmanager
def allow_interrupts() -> Iterator[None]:
    """Raise KeyboardInterrupt on an interrupt, also where ipykernel has its own handler."""
    with _on_interrupt(signal.default_int_handler):
        yield


@contextlib.contextmanager
def defer_interrupts() -> Iterator[None]:
    """Handle an interrupt at the end of the block, for steps that must not be separated."""
    received: list[tuple[int, FrameType | None]] = []
    before = signal.getsignal(signal.SIGINT)
    with _on_interrupt(lambda number, frame: received.append((number, frame))):
        yield
    if received and callable(before):
        before(*received[0])


@contextlib.contextmanager
def _on_interrupt(handler: signal._HANDLER) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
