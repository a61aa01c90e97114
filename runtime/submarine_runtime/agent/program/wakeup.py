"""Sleeps until something happens: a signal, another thread's word, or the time is up.

A sleep costs nothing meanwhile; ``SIGCHLD`` ends it, so nobody polls for the program's end.
"""

from __future__ import annotations

import os
import select
import signal
from contextlib import contextmanager
from types import FrameType
from typing import Iterator


class Terminated(BaseException):  # like KeyboardInterrupt, not an error
    """SIGTERM came from outside; raised once, in the main thread, wherever it is.

    In the middle of an import it may come out as another exception: see ``Wakeup.terminated``.
    """


class Wakeup:
    """The main thread's alarm clock; takes over SIGTERM, SIGINT, SIGHUP and SIGCHLD."""

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
        """Whether SIGTERM came, whatever became of what was raised for it."""
        return self._terminated

    def _terminate(self, number: int, frame: FrameType | None) -> None:
        if not self._terminated:
            self._terminated = True
            if not self._deferred:
                raise Terminated

    @contextmanager
    def deferred(self) -> Iterator[None]:
        """Let SIGTERM wait for the end of the block: for what must not be half done."""
        self._deferred = True
        try:
            yield
        finally:
            self._deferred = False
        if self._terminated:
            raise Terminated

    def wake(self) -> None:
        """End the sleep; callable from any thread."""
        try:
            os.write(self._writer, b"\0")
        except BlockingIOError:
            pass  # it is awake many times over

    def wait(self, seconds: float) -> None:
        """Sleep for ``seconds``, or less when something happens."""
        if self._terminated:
            raise Terminated  # it came where exceptions are lost, in a destructor for instance
        ready, _, _ = select.select([self._reader], [], [], max(0.0, seconds))
        if ready:
            try:
                os.read(self._reader, 4096)
            except BlockingIOError:
                pass
