"""Raise KeyboardInterrupt in a paragraph's thread when the user presses Stop.

Commands then handle Stop as they handle Ctrl-C in a terminal. Python raises the exception between
two bytecode instructions of the thread, so it does not interrupt a blocking call. An exception that
is raised in a finalizer or a callback is lost there, so it is raised again until the run has ended.
"""

from __future__ import annotations

import contextlib
import ctypes
import sys
import threading
from collections.abc import Callable, Iterator
from typing import TypeVar

T = TypeVar("T")
#: Seconds between two exceptions.
_INTERVAL = 0.5
#: Maximum number of exceptions of a chain that are examined.
_MAX_CHAIN = 100


class Interruption:
    """Request to stop one run."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread: int | None = None
        self._ended = threading.Event()
        self._deferred = 0
        self.requested = False

    def request(self) -> None:
        """Interrupt the run, now or when it starts. Further calls have no effect."""
        with self._lock:
            if self.requested:
                return
            self.requested = True
            running = self._thread is not None
        if running:
            self._start()

    def acknowledge(self) -> None:
        """Do not interrupt the run again: a command has handled the interrupt and has ended."""
        with self._lock:
            self._thread = None

    def run(self, work: Callable[[], T]) -> T:
        """Return the result of ``work``, which is interruptible and runs in this thread.

        Raises
        ------
        KeyboardInterrupt
            From ``work``, after ``request`` was called.
        """
        with self._lock:
            self._thread = threading.get_ident()
            requested = self.requested
        try:
            if requested:
                self._start()
            return work()
        finally:
            # First, because Python raises no exception before the assignment.
            self._thread = None
            with contextlib.suppress(KeyboardInterrupt):
                with self._lock:
                    _raise_in(threading.get_ident(), None)
                self._ended.set()

    @contextlib.contextmanager
    def deferred(self) -> Iterator[None]:
        """Do not interrupt the block, whose steps must not be separated."""
        with self._lock:
            self._deferred += 1
        try:
            yield
        finally:
            self._deferred -= 1

    def _start(self) -> None:
        threading.Thread(target=self._repeat, daemon=True, name="submarine-stop").start()

    def _repeat(self) -> None:
        """Raise the exception until the run has ended, except while the run handles it."""
        while True:
            with self._lock:
                if self._thread is None:
                    return
                if not (self._deferred or _handles_interrupt(self._thread)):
                    _raise_in(self._thread, KeyboardInterrupt)
            self._ended.wait(_INTERVAL)


def _handles_interrupt(thread: int) -> bool:
    """Whether a thread is in a handler of KeyboardInterrupt, such as one that cancels a job."""
    # Python 3.11 returns triples in place of exceptions.
    found = sys._current_exceptions().get(thread)  # type: ignore[attr-defined, unused-ignore]
    error: BaseException | None = found[1] if isinstance(found, tuple) else found
    for _ in range(_MAX_CHAIN):
        if error is None or isinstance(error, KeyboardInterrupt):
            break
        error = error.__context__
    return error is not None


def _raise_in(thread: int, error: type[BaseException] | None) -> None:
    """Raise an exception in a thread; None discards one that is not raised yet."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread), None if error is None else ctypes.py_object(error)
    )
