"""The end of a cell in a headless run: jobs that it has started by Python are shown and waited for.

Where our runner waits at the end of the run, nothing is waited for here unless the kernel is about
to exit. What a cell's command starts, the command itself waits for (``headless_words``).
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from submarine_jobs.client import started_jobs as started
from submarine_jobs.errors import SubmarineError
from submarine_magics.execution import headless_of, interruptible, thread_errors
from submarine_magics.frontend import WaitInterrupted, as_refusal
from submarine_magics.headless.open_jobs import INTERRUPTED, Answering, Failed

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


def end_cell(shell: InteractiveShell, result: Any) -> None:
    """IPython's ``post_run_cell`` in a process that has started jobs.

    Parameters
    ----------
    result
        IPython's ``ExecutionResult``; an error put in makes the cell a failed one.
    """
    headless = headless_of(shell)
    if headless is None:
        return
    answering = Answering(shell)
    if not (answering.jobs.open() or started.submits_under_way() or thread_errors.some()):
        return
    error = getattr(result, "error_in_exec", None) or getattr(result, "error_before_exec", None)
    interrupted = result is None or isinstance(error, KeyboardInterrupt)
    found: BaseException | None = None
    try:
        with interruptible():
            answering.present()
            if headless.barrier and not shell.exit_now:
                return
            if interrupted:
                answering.stop(INTERRUPTED)
            else:
                answering.wait()
            answering.show()
    except KeyboardInterrupt:
        answering.stop(INTERRUPTED)
        answering.show()
        found = WaitInterrupted("stopped waiting for the jobs of this cell.")
    found = found or next((item.error for item in answering.failed), None)
    for item in answering.failed:
        if item.error is not found or error is not None:
            _warn(item)
    if found is not None and error is None and result is not None:
        _fail(shell, result, found)


def _warn(item: Failed) -> None:
    print(as_refusal(item.error), file=sys.stderr, flush=True)


def _fail(shell: InteractiveShell, result: Any, error: BaseException) -> None:
    """Let the cell fail as if its last line had raised ``error``."""
    if isinstance(error, SubmarineError):
        as_refusal(error)
    show: Any = shell.showtraceback
    show((type(error), error, error.__traceback__))
    result.error_in_exec = error
