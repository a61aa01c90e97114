"""Retry operations of a job directory after transient errors."""

from __future__ import annotations

import time
from typing import Callable, TypeVar

from submarine_runtime.backoff import Backoff
from submarine_runtime.storage.store import Store, StoreError, UnconfirmedError
from submarine_runtime.translation import _

T = TypeVar("T")


def retry(
    action: Callable[[], T],
    deadline: float | Callable[[], float],
    *,
    wait: Callable[[float], object] = time.sleep,
    first: float = 0.2,
    longest: float = 10.0,
    store: Store | None = None,
) -> T:
    """Retry ``action`` after transient errors, with jittered backoff.

    Parameters
    ----------
    deadline
        ``time.monotonic()`` after which the last error is raised; a function if it may change.
    wait
        Function that waits for some seconds; if it returns early, the retry is earlier.
    store
        Its ``on_wait`` is called.

    Raises
    ------
    StoreError
        The first permanent error, or the last transient one after the deadline.
    """
    backoff = Backoff(first, longest)
    waiting = False
    try:
        while True:
            try:
                return action()
            except StoreError as exc:
                now, end = time.monotonic(), deadline() if callable(deadline) else deadline
                pause = backoff.pause()
                if not exc.transient or now + pause > end:
                    raise
                if store is not None and not isinstance(exc, UnconfirmedError):
                    waiting = True
                    store.on_wait(wait_sentence(store.label, end - now, exc))
            wait(pause)
    finally:
        if waiting and store is not None:
            store.on_wait("")


def wait_sentence(label: str, left: float, error: object) -> str:
    """Return the text that a job displays while it waits for the file system ``label``."""
    return _("waiting for {label} ({max:.0f} s left): {error}").format(
        label=label, max=max(0.0, left), error=error
    )[:500]
