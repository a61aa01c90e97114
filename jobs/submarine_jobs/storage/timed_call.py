"""Give a time limit to a call that has none of its own (hdfs-native); nothing else.

The call runs in a daemon thread. When the limit passes the caller goes on and the thread is left
behind: it ends when the call does. At most ``MAX_STUCK`` may be left so; beyond that calls are
refused at once, because the file system plainly does not answer.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
MAX_STUCK = 16
_slots = threading.BoundedSemaphore(MAX_STUCK)


def call_within(seconds: float, function: Callable[[], T]) -> T:
    """Run ``function`` and return its result, or raise ``TimeoutError`` after ``seconds``."""
    if not _slots.acquire(timeout=seconds):
        raise TimeoutError(f"{MAX_STUCK} earlier calls still wait for an answer")
    outcome: list[T] = []
    failure: list[BaseException] = []
    done = threading.Event()

    def work() -> None:
        try:
            outcome.append(function())
        except BaseException as exc:
            failure.append(exc)
        finally:
            done.set()
            _slots.release()

    threading.Thread(target=work, daemon=True, name="submarine-storage").start()
    if not done.wait(seconds):
        raise TimeoutError(f"no answer within {seconds:g} s")
    if failure:
        raise failure[0]
    return outcome[0]
