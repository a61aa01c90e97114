"""The end of a headless run: wait until all jobs of the kernel have ended, and update their cards.

The runner executes ``wait_for_jobs`` after the last cell, and ``end_jobs`` if the run ends early.
Their result is one display of type ``MIME_TYPE``. They do not raise: the runner reports each
failure below the cell that started the job.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import IPython
import IPython.display

from submarine_jobs.client import any_started
from submarine_magics.execution import (
    allow_interrupts,
    has_thread_errors,
    ignore_interrupts,
    threads_of_cells,
)
from submarine_runtime.translation import _

if TYPE_CHECKING:
    from submarine_magics.execution import Execution
    from submarine_magics.headless.unhandled_jobs import JobFailure, UnhandledJobs

MIME_TYPE = "application/vnd.submarine.barrier.v1+json"
#: Seconds without a running job after which the runner receives the names of threads.
_REPORT_AFTER = 5.0
_MAX_NAMED = 5


def wait_for_jobs() -> None:
    """Wait for the unhandled jobs that this kernel has started, then display the result.

    Threads of cells are waited for too, as at the end of a script: they may start another job.

    The JSON has ``failed``, a list of ``job_id cell_id execution_count ename evalue traceback``,
    and ``detached``, a list of ``job_id cell_id execution_count`` of the jobs that continue. An
    interrupt ends the wait: the jobs are cancelled or detached, as the run is configured, and the
    result is displayed. If threads take long, a display with ``threads``, a list of names, precedes
    it.
    """
    _end(lambda unhandled: unhandled.wait(_ThreadReport().update))


def end_jobs(why: str) -> None:
    """Cancel or detach the running jobs, as an interrupt does, then display the result.

    Parameters
    ----------
    why
        The reason in the record of a cancelled job: ``the run's time limit``.
    """
    _end(lambda unhandled: unhandled.stop(why))


def _end(action: Callable[[UnhandledJobs], object]) -> None:
    shell: Any = IPython.get_ipython()  # type: ignore[attr-defined, no-untyped-call, unused-ignore]
    if shell is None or not (any_started() or has_thread_errors() or threads_of_cells(shell)):
        _display_result([], [])
        return
    # cost: the command line; the runner calls this in every notebook, and most have no jobs.
    from submarine_magics.headless.unhandled_jobs import INTERRUPTED, UnhandledJobs

    with ignore_interrupts():
        unhandled = UnhandledJobs(shell)
    try:
        try:
            with allow_interrupts():
                action(unhandled)
        except KeyboardInterrupt:
            unhandled.stop(INTERRUPTED)
    finally:
        with ignore_interrupts():
            detached = [(entry.job.id, entry.execution) for entry in unhandled.jobs.detached()]
            _display_result(unhandled.failed, detached)
            unhandled.finish_cards()


class _ThreadReport:
    """Display once which threads are waited for, after ``_REPORT_AFTER`` seconds."""

    def __init__(self) -> None:
        self._since: float | None = None
        self._displayed = False

    def update(self, threads: list[threading.Thread]) -> None:
        """Update with the threads that run while no job does; empty: a job was running."""
        now = time.monotonic()
        if not threads or self._since is None:
            self._since = now
        if not self._displayed and now - self._since >= _REPORT_AFTER:
            self._displayed = True
            names = [thread.name for thread in threads[:_MAX_NAMED]]
            _display({"threads": names}, _("Waiting for {names}.").format(names=", ".join(names)))


def _display_result(
    failed: Sequence[JobFailure], detached: Sequence[tuple[str, Execution | None]]
) -> None:
    result = {
        "failed": [_failure(item) for item in failed],
        "detached": [_place(*entry) for entry in detached],
    }
    _display(
        result,
        _("Failed jobs: {count}; detached jobs: {detached_count}.").format(
            count=len(failed), detached_count=len(detached)
        ),
    )


def _display(content: dict[str, Any], text: str) -> None:
    display: Any = IPython.display.display
    display({MIME_TYPE: content, "text/plain": text}, raw=True)


def _failure(item: JobFailure) -> dict[str, Any]:
    """Return the error that the runner writes below the cell."""
    # cost: the front end, which a notebook without jobs does not need.
    from submarine_magics.frontend import sentence_lines

    error = item.error
    render = error.__dict__.get("_render_traceback_")
    lines: list[str] = render() if render is not None else sentence_lines(error)
    words = {"ename": type(error).__name__, "evalue": str(error), "traceback": lines}
    return {**_place(item.job_id, item.execution), **words}


def _place(job_id: str, execution: Execution | None) -> dict[str, Any]:
    cell_id, count = (execution.cell_id, execution.number) if execution else (None, None)
    return {"job_id": job_id, "cell_id": cell_id, "execution_count": count}
