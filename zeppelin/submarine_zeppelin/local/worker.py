"""A thread that does one thing after the other for others, and cleans up its event loop.

``jupyter_client`` makes an event loop for every thread that calls it and never closes one; there
would be one more with each paragraph. A daemon, so that no work holds up the end of the process.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


class Worker:
    """The thread; it starts with the first piece of work."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._work: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = (
            queue.SimpleQueue()
        )
        self._thread: threading.Thread | None = None

    def do(self, work: Callable[[], T]) -> T:
        """Have it done, and wait; what it raises is raised here."""
        done: Future[T] = Future()
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, daemon=True, name=self._name)
                self._thread.start()
        self._work.put((work, done))
        return done.result()

    def end(self) -> None:
        """Let the thread end once all is done; more work starts a new one."""
        with self._lock:
            thread, self._thread = self._thread, None
        if thread is not None:
            self._work.put(None)
            thread.join()

    def _run(self) -> None:
        while (item := self._work.get()) is not None:
            work, done = item
            try:
                done.set_result(work())
            except BaseException as error:
                done.set_exception(error)
            del item, work, done
        with contextlib.suppress(Exception):
            from jupyter_core.utils import ensure_event_loop

            ensure_event_loop().close()
