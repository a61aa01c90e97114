"""The end of a cell in a headless run: show the jobs started from Python, and wait for them.

If the runner waits at the end of the run, this module waits only when the kernel is about to exit.
Jobs that a command has started are waited for by the command itself (``headless_options``).
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from submarine_jobs.client import pending_submits
from submarine_jobs.errors import SubmarineError
from submarine_magics.execution import allow_interrupts, has_thread_errors, headless_settings
from submarine_magics.frontend import WaitInterrupted, without_traceback
from submarine_magics.headless.unhandled_jobs import INTERRUPTED, JobFailure, UnhandledJobs
from submarine_runtime.translation import _

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


def end_cell(shell: InteractiveShell, result: Any) -> None:
    """Handle IPython's event ``post_run_cell`` in a process that has started jobs.

    Parameters
    ----------
    result
        IPython's ``ExecutionResult``. An error that is set in it makes the cell fail.
    """
    headless = headless_settings(shell)
    if headless is None:
        return
    unhandled = UnhandledJobs(shell)
    if not (unhandled.jobs.unhandled() or pending_submits() or has_thread_errors()):
        return
    error = getattr(result, "error_in_exec", None) or getattr(result, "error_before_exec", None)
    interrupted = result is None or isinstance(error, KeyboardInterrupt)
    found: BaseException | None = None
    try:
        with allow_interrupts():
            unhandled.show_missing_cards()
            if headless.barrier and not shell.exit_now:
                return
            if interrupted:
                unhandled.stop(INTERRUPTED)
            else:
                unhandled.wait()
            unhandled.finish_cards()
    except KeyboardInterrupt:
        unhandled.stop(INTERRUPTED)
        unhandled.finish_cards()
        found = WaitInterrupted(_("stopped waiting for the jobs of this cell."))
    found = found or next((item.error for item in unhandled.failed), None)
    for item in unhandled.failed:
        if item.error is not found or error is not None:
            _warn(item)
    if found is not None and error is None and result is not None:
        _fail(shell, result, found)


def _warn(item: JobFailure) -> None:
    print(item.error, file=sys.stderr, flush=True)


def _fail(shell: InteractiveShell, result: Any, error: BaseException) -> None:
    """Make the cell fail as if its last line had raised ``error``."""
    if isinstance(error, SubmarineError):
        without_traceback(error)
    show: Any = shell.showtraceback
    show((type(error), error, error.__traceback__))
    result.error_in_exec = error
