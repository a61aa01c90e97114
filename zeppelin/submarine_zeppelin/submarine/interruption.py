"""Raise KeyboardInterrupt in a paragraph's thread when the user presses Stop.

Commands then handle Stop as they handle Ctrl-C in a terminal. Python raises the exception between
two bytecode instructions of the thread, so it does not interrupt a blocking call.
"""

from __future__ import annotations

import contextlib
import ctypes
import threading
import time
from collections.abc import Iterator


class Interruption:
    """Request to stop one run."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread: int | None = None
        self._sent = False
        self.requested = False

    def request(self) -> None:
        """Interrupt the run, now or when it starts. Further calls have no effect."""
        with self._lock:
            if not self.requested:
                self.requested = True
                self._send()

    @contextlib.contextmanager
    def interruptible(self) -> Iterator[None]:
        """Make the block in the calling thread interruptible.

        Raises
        ------
        KeyboardInterrupt
            In the block, after ``request`` was called.
        """
        with self._lock:
            self._thread = threading.get_ident()
            if self.requested and not self._sent:
                self._send()
        try:
            yield
        finally:
            with contextlib.suppress(KeyboardInterrupt):
                self._leave()

    def _leave(self) -> None:
        """Wait for a pending interrupt, so that it is not raised after the block."""
        with self._lock:
            self._thread = None
            sent = self._sent
        if sent:
            for _ in range(20):
                time.sleep(0.001)

    def _send(self) -> None:
        if self._thread is not None:
            self._sent = True
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(self._thread), ctypes.py_object(KeyboardInterrupt)
            )
