"""Zeppelin's Stop as what Ctrl-C is elsewhere: a KeyboardInterrupt in the thread of the paragraph.

So that every verb of the core does on Stop what it does on Ctrl-C, whether it waits for a job,
follows a log or asks a cluster. Python delivers it between two steps of that thread only.
"""

from __future__ import annotations

import contextlib
import ctypes
import threading
import time
from collections.abc import Iterator


class Stop:
    """The wish to stop one run."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread: int | None = None
        self._sent = False
        self.wished = False

    def wish(self) -> None:
        """Stop the run, now or as soon as it begins; more than once means once."""
        with self._lock:
            if not self.wished:
                self.wished = True
                self._send()

    @contextlib.contextmanager
    def here(self) -> Iterator[None]:
        """What the calling thread does within can be stopped; nothing of it lasts behind.

        Raises
        ------
        KeyboardInterrupt
            Inside, once ``wish`` was called.
        """
        with self._lock:
            self._thread = threading.get_ident()
            if self.wished and not self._sent:
                self._send()
        try:
            yield
        finally:
            with contextlib.suppress(KeyboardInterrupt):
                self._leave()

    def _leave(self) -> None:
        """Take an interrupt that is under way here, not in whatever the thread does next."""
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
