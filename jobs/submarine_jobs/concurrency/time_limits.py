"""Add a time limit to calls that have none of their own (hdfs-native).

The call runs in a daemon thread. After the limit the caller continues, and the thread ends when the
call returns. Further calls fail while ``MAX_STUCK`` threads are stuck, because the file system does
not respond.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeVar

from submarine_runtime.translation import _

T = TypeVar("T")
MAX_STUCK = 16


@dataclass
class _Limit:
    """Limit of one call in seconds; ``failure``: why no further calls are made, or empty."""

    seconds: float
    failure: str = ""


_limit: ContextVar[_Limit | None] = ContextVar("storage_limit", default=None)
_slots = threading.BoundedSemaphore(MAX_STUCK)


def call_with_timeout(seconds: float, function: Callable[[], T]) -> T:
    """Run ``function`` and return its result, or raise ``TimeoutError`` after ``seconds``."""
    if not _slots.acquire(timeout=seconds):
        raise TimeoutError(
            _("{count} earlier calls are still waiting for a response").format(count=MAX_STUCK)
        )
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
        raise TimeoutError(_("no response within {seconds:g} s").format(seconds=seconds))
    if failure:
        raise failure[0]
    return outcome[0]


@contextmanager
def call_timeout(seconds: float) -> Iterator[None]:
    """Limit each storage call that this context makes inside the block.

    After the first call that times out the others fail at once, so that the block waits for at most
    one timeout.
    """
    token = _limit.set(_Limit(seconds))
    try:
        yield
    finally:
        _limit.reset(token)


def current_timeout(seconds: float) -> float:
    """Return ``seconds`` or the lower limit of this context; raise TimeoutError after a failure."""
    limit = _limit.get()
    if limit is None:
        return seconds
    if limit.failure:
        raise TimeoutError(limit.failure)
    return min(seconds, limit.seconds)


def fail_further_calls(reason: str) -> None:
    """Make the other calls of this context fail at once: the file system does not respond."""
    limit = _limit.get()
    if limit is not None:
        limit.failure = limit.failure or reason
