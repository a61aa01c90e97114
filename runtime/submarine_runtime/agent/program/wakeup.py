"""Sleep until a signal, a call of ``wake`` by another thread, or a timeout.

``SIGCHLD`` ends the sleep, so the program's end is noticed without polling.
"""

from __future__ import annotations

import os
import select
import signal
from contextlib import contextmanager
from types import FrameType
from typing import Iterator


class SigtermInterrupt(BaseException):  # Like KeyboardInterrupt, not an error.
    """SIGTERM has arrived; raised once, in the main thread, at any point.

    During an import it may appear as another exception: see ``Wakeup.terminated``.
    """


class Wakeup:
    """Sleep of the main thread; handles SIGTERM, SIGINT, SIGHUP and SIGCHLD."""

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)
        self._terminated = False
        self._deferred = False
        signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        # Handlers and not SIG_IGN, which the program would inherit.
        for number in (signal.SIGCHLD, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, lambda *_: None)
        signal.signal(signal.SIGQUIT, signal.SIG_DFL)
        signal.signal(signal.SIGTERM, self._terminate)

    @property
    def terminated(self) -> bool:
        """Whether SIGTERM has arrived, even if its exception was lost."""
        return self._terminated

    def _terminate(self, number: int, frame: FrameType | None) -> None:
        if not self._terminated:
            self._terminated = True
            if not self._deferred:
                raise SigtermInterrupt

    @contextmanager
    def deferred(self) -> Iterator[None]:
        """Defer SIGTERM to the end of the block."""
        self._deferred = True
        try:
            yield
        finally:
            self._deferred = False
        if self._terminated:
            raise SigtermInterrupt

    def wake(self) -> None:
        """End the sleep; callable from any thread."""
        try:
            os.write(self._writer, b"\0")
        except BlockingIOError:
            pass  # The pipe already holds many wake-ups.

    def wait(self, seconds: float) -> None:
        """Sleep for ``seconds``, or until an event."""
        if self._terminated:
            raise SigtermInterrupt  # The exception was lost, in a destructor for instance.
        ready, _, _ = select.select([self._reader], [], [], max(0.0, seconds))
        if ready:
            try:
                os.read(self._reader, 4096)
            except BlockingIOError:
                pass
