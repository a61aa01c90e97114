"""Let calls of a native library end before the interpreter does.

Until Python 3.14, a thread that returns to Python during the finalization of the interpreter is
ended by unwinding its stack. Frames of Rust, such as those of hdfs-native, answer that with an
abort: exit code 134, "FATAL: exception not rethrown". So calls are counted, and an exit waits for
those that run. The calls of the main thread have ended by then.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
from contextlib import contextmanager
from typing import Iterator

from submarine_runtime.translation import _

#: Seconds that an exit waits for running calls.
_PATIENCE = 3.0


class InterpreterExitError(RuntimeError):
    """A call was not made, because the interpreter exits."""


class NativeCalls:
    """The running calls of native libraries in this process."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._running = 0
        self._exits = False
        #: Exit code of a process that must end while a call runs; None: it is finalized as usual.
        self.exit_code: int | None = None

    @contextmanager
    def call(self) -> Iterator[None]:
        """Count the call inside; raise ``InterpreterExitError`` if the interpreter exits."""
        with self._changed:
            self.check()
            self._running += 1
        try:
            yield
        finally:
            with self._changed:
                self._running -= 1
                self._changed.notify_all()

    def check(self) -> None:
        """Raise ``InterpreterExitError`` if the interpreter exits: between two parts of a call."""
        if self._exits and threading.current_thread() is not threading.main_thread():
            raise InterpreterExitError(_("Python exits and starts no further call"))

    def close(self) -> None:
        """Refuse further calls of other threads than the main thread, and wait for running ones.

        A call that does not end is waited for no longer than ``_PATIENCE``. A process whose exit
        code is known then ends without finalization.
        """
        deadline = time.monotonic() + _PATIENCE
        with self._changed:
            self._exits = True
            while self._running and time.monotonic() < deadline:
                self._changed.wait(deadline - time.monotonic())
            stuck = self._running > 0
        if stuck and self.exit_code is not None:
            for stream in (sys.stdout, sys.stderr):
                if stream is not None:
                    stream.flush()
            os._exit(self.exit_code)

    def forget(self) -> None:
        """Forget the calls of other threads, which do not exist in a new child process."""
        self._changed = threading.Condition()
        self._running = 0


#: The calls of this process.
native_calls = NativeCalls()
atexit.register(native_calls.close)
os.register_at_fork(after_in_child=native_calls.forget)
