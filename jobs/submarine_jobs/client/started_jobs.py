"""The jobs that this process has started, with listeners for changes.

A headless kernel listens, to wait for the jobs of its cells and to cancel them when its runner
stops. The list has at most ``MAX_KEPT`` jobs.
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
    """Receives changes of the jobs of this process, in the thread of the change."""

    def job_started(self, job: Job) -> None:
        """A job is about to be submitted to its backend, or was joined."""

    def job_refused(self, job_id: str) -> None:
        """The backend has refused the job; it will not run."""

    def job_settled(self, job_id: str) -> None:
        """The failure of the job was raised here, or its cancellation was requested here.

        The failure need not be reported again. After a failed request the job may continue.
        """


_lock = threading.RLock()
_kept: dict[str, Job] = {}
_settled: set[str] = set()
_listeners: list[JobListener] = []
_submitting = 0
_most = MAX_KEPT
_find_notebook: Callable[[], tuple[str, ...]] | None = None


def set_notebook(find: Callable[[], tuple[str, ...]] | None) -> None:
    """Register the notebook of this kernel process; None: there is no notebook.

    Parameters
    ----------
    find
        Returns the names of the notebook: the path of its document, and one of the kernel.
    """
    global _find_notebook
    _find_notebook = find


def notebook() -> tuple[str, ...]:
    """Return the names of the notebook of this kernel process; empty if there is none."""
    return _find_notebook() if _find_notebook is not None else ()


def add_listener(listener: JobListener) -> None:
    """Call ``listener`` for all later changes, and first for the jobs in the list."""
    with _lock:
        _listeners.append(listener)
        for job in _kept.values():
            listener.job_started(job)
        for job_id in _settled:
            listener.job_settled(job_id)


def limit_kept_jobs(number: int) -> None:
    """Set how many jobs are kept for later listeners; 0 in a process without listeners."""
    global _most
    _most = min(number, MAX_KEPT)


def remove_listener(listener: JobListener) -> None:
    """Stop calling ``listener``."""
    with _lock, contextlib.suppress(ValueError):
        _listeners.remove(listener)


def job_started(job: Job) -> None:
    """Add a job to the list; see ``JobListener.job_started``."""
    with _lock:
        _kept[job.id] = job
        while len(_kept) > _most:
            _settled.discard(first := next(iter(_kept)))
            del _kept[first]
        listeners = list(_listeners)
    for listener in listeners:
        listener.job_started(job)


def job_refused(job_id: str) -> None:
    """Remove a job from the list; see ``JobListener.job_refused``."""
    with _lock:
        _kept.pop(job_id, None)
        listeners = list(_listeners)
    for listener in listeners:
        listener.job_refused(job_id)


def failure_reported(job_id: str) -> None:
    """Settle a job whose failure is raised; only in the main thread, where it fails the cell."""
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
    """Whether this process has started a job or is submitting one."""
    return bool(_kept) or _submitting > 0


@contextlib.contextmanager
def submitting() -> Iterator[None]:
    """Count a submission as pending inside the ``with`` block."""
    global _submitting
    with _lock:
        _submitting += 1
    try:
        yield
    finally:
        with _lock:
            _submitting -= 1


def pending_submits() -> int:
    """Return the number of submissions of this process that have not returned."""
    return _submitting
