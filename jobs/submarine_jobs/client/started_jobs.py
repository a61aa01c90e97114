"""The jobs that this process has started, told to whoever must answer for them.

A headless kernel waits for what its cells have started, by whatever way, and ends it when nobody
waits any more. Does not wait, cancel or decide itself; costs a list of at most ``MAX_KEPT`` jobs.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from submarine_jobs.client.job import Job

MAX_KEPT = 2000


class JobListener(Protocol):
    """Somebody who answers for this process's jobs; called from the thread where it happens."""

    def job_started(self, job: Job) -> None:
        """A job is about to be handed to its backend, or was joined that an attempt had begun."""

    def job_refused(self, job_id: str) -> None:
        """The backend did not take the job: nothing of it will ever run."""

    def job_settled(self, job_id: str) -> None:
        """Its end was told here by an error, or wished here: nobody needs to be told again.

        What is wished may still fail: the job may go on.
        """


_lock = threading.RLock()
_kept: dict[str, Job] = {}
_settled: set[str] = set()
_listeners: list[JobListener] = []
_submitting = 0
_most = MAX_KEPT
_find_notebook: Callable[[], tuple[str, ...]] | None = None


def set_notebook(find: Callable[[], tuple[str, ...]] | None) -> None:
    """Register the notebook whose kernel this process is; None: it is none.

    Parameters
    ----------
    find
        Returns the names of the notebook: the path of its document, and one of the kernel.
    """
    global _find_notebook
    _find_notebook = find


def notebook() -> tuple[str, ...]:
    """Names of the notebook whose kernel this process is; empty if it is none."""
    return _find_notebook() if _find_notebook is not None else ()


def add_listener(listener: JobListener) -> None:
    """Let ``account`` hear of everything from now on, and first of what was begun before."""
    with _lock:
        _listeners.append(listener)
        for job in _kept.values():
            listener.job_started(job)
        for job_id in _settled:
            listener.job_settled(job_id)


def limit_kept_jobs(number: int) -> None:
    """Set how many jobs are kept for a later account; 0 in a process that will have none."""
    global _most
    _most = min(number, MAX_KEPT)


def remove_listener(listener: JobListener) -> None:
    """Tell ``account`` nothing more."""
    with _lock, contextlib.suppress(ValueError):
        _listeners.remove(listener)


def job_started(job: Job) -> None:
    """A job is going to be handed over now, or was joined; see ``JobListener.job_started``."""
    with _lock:
        _kept[job.id] = job
        while len(_kept) > _most:
            _settled.discard(first := next(iter(_kept)))
            del _kept[first]
        listeners = list(_listeners)
    for listener in listeners:
        listener.job_started(job)


def job_refused(job_id: str) -> None:
    """The backend did not take it; see ``JobListener.job_refused``."""
    with _lock:
        _kept.pop(job_id, None)
        listeners = list(_listeners)
    for listener in listeners:
        listener.job_refused(job_id)


def failure_reported(job_id: str) -> None:
    """An error about its end is raised now; in the main thread, where it fails the cell."""
    if threading.current_thread() is threading.main_thread():
        job_settled(job_id)


def job_settled(job_id: str) -> None:
    """See ``JobListener.job_settled``; ignored for a job that is not in the list."""
    with _lock:
        if job_id not in _kept:
            return
        _settled.add(job_id)
        listeners = list(_listeners)
    for listener in listeners:
        listener.job_settled(job_id)


def any_started() -> bool:
    """Whether this process has started any job at all, or is about to."""
    return bool(_kept) or _submitting > 0


@contextlib.contextmanager
def submitting() -> Iterator[None]:
    """Around a submit, from before its job has an id."""
    global _submitting
    with _lock:
        _submitting += 1
    try:
        yield
    finally:
        with _lock:
            _submitting -= 1


def pending_submits() -> int:
    """How many submits of this process have not come back yet."""
    return _submitting
