"""The end of a headless run: every job of the kernel has ended, and every card says how.

Our runner executes ``wait_for_jobs`` after the last cell, and ``end_jobs`` where the run ends
early. What it reads is one display of the type ``MIME_TYPE``. Does not raise: the runner puts the
failures where they belong, below the cells that started the jobs.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from submarine_jobs.client import started_jobs as started
from submarine_magics.execution import thread_errors, threads_of_cells

if TYPE_CHECKING:
    from submarine_magics.execution import Execution
    from submarine_magics.headless.open_jobs import Answering, Failed

MIME_TYPE = "application/vnd.submarine.barrier.v1+json"
#: Seconds after which the runner hears what a run without any open job still waits for.
_SAID_AFTER = 5.0
_MAX_NAMED = 5


def wait_for_jobs() -> None:
    """Wait for the jobs that this kernel has started and nobody has answered for; then tell.

    Threads of cells are waited for too, as at the end of a script: they may start another job.

    The display's JSON holds ``failed``, a list of ``job_id cell_id execution_count ename evalue
    traceback``, and ``detached``, a list of ``job_id cell_id execution_count`` of the jobs that go
    on. An interrupt ends the waiting: the jobs are cancelled or left alone, as the runner has told
    the kernel, and the display is sent all the same. One with ``threads``, a list of names, comes
    before it where threads take their time.
    """
    _end(lambda answering: answering.wait(_Told().threads))


def end_jobs(why: str) -> None:
    """Cancel the jobs that go on, or leave them alone, as an interrupt does; then tell, as above.

    Parameters
    ----------
    why
        For the record of what is cancelled: ``the run's time limit``.
    """
    _end(lambda answering: answering.stop(why))


def _end(how: Callable[[Answering], object]) -> None:
    import IPython

    shell: Any = IPython.get_ipython()  # type: ignore[attr-defined, no-untyped-call, unused-ignore]
    if shell is None or not (started.anything() or thread_errors.some() or threads_of_cells(shell)):
        _tell([], [])
        return
    from submarine_magics.execution import interruptible, undisturbed
    from submarine_magics.headless.open_jobs import INTERRUPTED, Answering

    with undisturbed():
        answering = Answering(shell)
    try:
        try:
            with interruptible():
                how(answering)
        except KeyboardInterrupt:
            answering.stop(INTERRUPTED)
    finally:
        with undisturbed():
            left = [(entry.job.id, entry.execution) for entry in answering.jobs.left()]
            _tell(answering.failed, left)
            answering.show()


class _Told:
    """Says once which threads are waited for, when that takes long."""

    def __init__(self) -> None:
        self._since: float | None = None
        self._said = False

    def threads(self, alive: list[threading.Thread]) -> None:
        """No job is open, but these are at work; none: there was a job just now."""
        now = time.monotonic()
        if not alive or self._since is None:
            self._since = now
        if not self._said and now - self._since >= _SAID_AFTER:
            self._said = True
            names = [thread.name for thread in alive[:_MAX_NAMED]]
            _put({"threads": names}, f"Waiting for {', '.join(names)}.")


def _tell(failed: Sequence[Failed], left: Sequence[tuple[str, Execution | None]]) -> None:
    told = {
        "failed": [_failure(item) for item in failed],
        "detached": [_place(*entry) for entry in left],
    }
    _put(told, f"Jobs that failed: {len(failed)}; that go on: {len(left)}.")


def _put(told: dict[str, Any], text: str) -> None:
    import IPython.display

    put: Any = IPython.display.display
    put({MIME_TYPE: told, "text/plain": text}, raw=True)


def _failure(item: Failed) -> dict[str, Any]:
    """What a runner writes below the cell that has started a job."""
    from submarine_magics.frontend import sentence_lines

    error = item.error
    render = error.__dict__.get("_render_traceback_")
    lines: list[str] = render() if render is not None else sentence_lines(error)
    words = {"ename": type(error).__name__, "evalue": str(error), "traceback": lines}
    return {**_place(item.job_id, item.execution), **words}


def _place(job_id: str, execution: Execution | None) -> dict[str, Any]:
    cell_id, count = (execution.cell_id, execution.count) if execution else (None, None)
    return {"job_id": job_id, "cell_id": cell_id, "execution_count": count}
