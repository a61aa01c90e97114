"""What an interrupt does to a piece of code in the main thread: nothing, later, or as in Python.

In other threads, which no signal reaches, all of this does nothing.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """No interrupt meanwhile: what must be said is said."""
    with _on_interrupt(signal.SIG_IGN):
        yield
    sys.stdout.flush()


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """An interrupt raises KeyboardInterrupt meanwhile, also where ipykernel has other plans."""
    with _on_interrupt(signal.default_int_handler):
        yield


@contextlib.contextmanager
def in_one_go() -> Iterator[None]:
    """An interrupt is heard at the end: for two steps of which the first alone would be wrong."""
    heard: list[tuple[int, FrameType | None]] = []
    before = signal.getsignal(signal.SIGINT)
    with _on_interrupt(lambda number, frame: heard.append((number, frame))):
        yield
    if heard and callable(before):
        before(*heard[0])


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
