"""Give a time limit to calls that have none of their own (hdfs-native): to one, or to several.

The call runs in a daemon thread. When the limit passes the caller goes on and the thread is left
behind: it ends when the call does. At most ``MAX_STUCK`` may be left so; beyond that calls are
refused at once, because the file system plainly does not answer.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")
MAX_STUCK = 16


@dataclass
class _Limit:
    """Seconds that one call may take, and why further calls are not made; empty: they are."""

    seconds: float
    silence: str = ""


_limit: ContextVar[_Limit | None] = ContextVar("storage_limit", default=None)
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


@contextmanager
def patience(seconds: float) -> Iterator[None]:
    """Limit each call of a storage that this thread makes inside the block.

    After the first call that got no answer the others fail at once, so that the block takes no
    longer than what does answer, and ``seconds``.
    """
    token = _limit.set(_Limit(seconds))
    try:
        yield
    finally:
        _limit.reset(token)


def limited(seconds: float) -> float:
    """``seconds``, or the limit of this context; TimeoutError after a call without an answer."""
    limit = _limit.get()
    if limit is None:
        return seconds
    if limit.silence:
        raise TimeoutError(limit.silence)
    return min(seconds, limit.seconds)


def note_silence(words: str) -> None:
    """Let the other calls of this context fail at once: the file system does not answer."""
    limit = _limit.get()
    if limit is not None:
        limit.silence = limit.silence or words
