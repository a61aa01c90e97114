"""The end of a headless run: every job of the kernel has ended, and every card says how.

Our runner executes ``wait_for_jobs`` after the last cell, and ``end_jobs`` where the run ends
early. What it reads is one display of the type ``MIME_TYPE``. Does not raise: the runner puts the
failures where they belong, below the cells that started the jobs.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from submarine_jobs import started

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from submarine_magics.kernel_jobs import KernelJob
    from submarine_magics.magics import SubmarineMagics

MIME_TYPE = "application/vnd.submarine.barrier.v1+json"
INTERRUPTED = "its notebook was interrupted"
#: Seconds that the ends of interrupted jobs may take together.
_END = 90.0
_SLICE = 0.2
_Failure = dict[str, Any]


def wait_for_jobs() -> None:
    """Wait for the jobs that this kernel has started and nobody has answered for; then tell.

    The display's JSON holds ``failed``, a list of ``job_id cell_id execution_count ename evalue
    traceback`` in the order of starting, and ``detached``, a list of ``job_id cell_id
    execution_count`` of the jobs that go on. An interrupt ends the waiting: the jobs are cancelled
    or left alone, as the runner has told the kernel, and the display is sent all the same.
    """
    _end(_End.wait)


def end_jobs(why: str) -> None:
    """Cancel the jobs that go on, or leave them alone, as an interrupt does; then tell, as above.

    Parameters
    ----------
    why
        For the record of what is cancelled: ``the run's time limit``.
    """
    _end(lambda end, failed: end.stop(failed, why))


def _end(how: Callable[[_End, list[_Failure]], None]) -> None:
    import IPython

    shell: Any = IPython.get_ipython()  # type: ignore[attr-defined, no-untyped-call, unused-ignore]
    if shell is None or not (started.any_begun() or started.submits_under_way()):
        _tell([], [])
        return
    failed: list[_Failure] = []
    end = _End(shell)
    try:
        try:
            how(end, failed)
        except KeyboardInterrupt:
            end.stop(failed, INTERRUPTED)
    finally:
        with _undisturbed():
            _tell(failed, end.show())


class _End:
    """One barrier on its way."""

    def __init__(self, shell: InteractiveShell) -> None:
        from submarine_magics.kernel_jobs import KernelJobs
        from submarine_magics.magics import SubmarineMagics

        self._magics: SubmarineMagics = SubmarineMagics.of(shell)
        self._jobs = KernelJobs.of(shell)

    def wait(self, failed: list[_Failure]) -> None:
        """Until all have ended, those too that a thread of some cell is just submitting."""
        while True:
            for entry in self._jobs.open():
                self._judge(entry, failed)
            if not self._jobs.open():
                if not started.submits_under_way():
                    return
                time.sleep(_SLICE)

    def _judge(self, entry: KernelJob, failed: list[_Failure]) -> None:
        from submarine_jobs.errors import SubmarineError
        from submarine_magics.cell_traceback import job_failed
        from submarine_runtime.protocol.states import State

        try:
            succeeded = entry.job.wait().state is State.SUCCEEDED
            if entry.answered:  # cancelled by a thread of some cell meanwhile
                return
            if not succeeded:
                raise job_failed(entry.job, self._magics.mouth.shell, self._magics.cells)
        except SubmarineError as error:
            failed.append(failure_of(entry, error))
        self._jobs.answer(entry.job.id)

    def stop(self, failed: list[_Failure], why: str) -> None:
        """Cancel what goes on, or leave it alone."""
        from submarine_magics.headless_mode import headless_of

        headless = headless_of(self._magics.mouth.shell)
        if headless is not None and headless.on_interrupt == "detach":
            for entry in self._jobs.open():
                self._jobs.leave(entry.job.id)
            return
        threads = [
            threading.Thread(target=_cancel, args=(entry, failed, why), daemon=True)
            for entry in self._jobs.open()
        ]
        with _undisturbed():
            for thread in threads:
                thread.start()
        # A second interrupt ends the waiting for what the cluster says to it, not the wish.
        with contextlib.suppress(KeyboardInterrupt):
            deadline = time.monotonic() + _END
            for thread in threads:
                while thread.is_alive() and time.monotonic() < deadline:
                    thread.join(_SLICE)

    def show(self) -> list[dict[str, Any]]:
        """Bring every card to its last state; gives the jobs that were left to go on."""
        self._magics.mouth.displays.finish_all()
        return [_place(entry) for entry in self._jobs.left()]


def _cancel(entry: KernelJob, failed: list[_Failure], why: str) -> None:
    from submarine_jobs.errors import SubmarineError

    try:
        entry.job.cancel(why)
    except SubmarineError as error:
        failed.append(failure_of(entry, error))


def failure_of(entry: KernelJob, error: Exception) -> _Failure:
    """What a runner writes below the cell that has started a job."""
    from submarine_magics.refusal import sentence_lines

    render = error.__dict__.get("_render_traceback_")
    lines: list[str] = render() if render is not None else sentence_lines(error)
    words = {"ename": type(error).__name__, "evalue": str(error), "traceback": lines}
    return {**_place(entry), **words}


def _place(entry: KernelJob) -> dict[str, Any]:
    return {"job_id": entry.job.id, "cell_id": entry.cell_id, "execution_count": entry.count}


def _tell(failed: list[_Failure], detached: list[dict[str, Any]]) -> None:
    import IPython.display

    put: Any = IPython.display.display
    text = f"{len(failed)} jobs have failed; {len(detached)} go on."
    put({MIME_TYPE: {"failed": failed, "detached": detached}, "text/plain": text}, raw=True)


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """No interrupt meanwhile: what must be said is said."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        sys.stdout.flush()
