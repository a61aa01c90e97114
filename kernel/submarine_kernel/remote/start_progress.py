"""Report the progress of a kernel start: in the server's log, in the page and in a terminal."""

from __future__ import annotations

import errno
import re
import sqlite3
import sys
from collections.abc import Callable

from submarine_jobs.commands.grammar import local_error
from submarine_jobs.errors import SubmarineError
from submarine_jobs.frontends import Frontend, StatusLine
from submarine_kernel.remote.pending_starts import PendingStart
from submarine_runtime.translation import _

_BETWEEN_SENTENCES = re.compile(r"(?<=[.!?]) (?=[A-Z`])")
#: Errors that are caused by the disk of this machine only.
_DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES)


class StartProgress(Frontend):
    """The front end of one start.

    Parameters
    ----------
    start
        Its status is updated.
    log
        Called with each line of the log.
    terminal
        Whether to use the terminal of this process. A server uses its terminal as its log.
    stopped
        Whether this start must fail now; called from any thread.
    """

    def __init__(
        self,
        start: PendingStart,
        log: Callable[[str], object],
        *,
        terminal: bool,
        stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        super().__init__()
        self.stopped = stopped
        self._start = start
        self._log = log
        self._line = StatusLine() if terminal and sys.stderr.isatty() else None

    def say(self, text: str) -> None:
        """Log a line."""
        self._log(text)

    def report_wait(self, reason: str) -> None:
        """Report what the start waits for, after each change."""
        sentence = _("The kernel {kernel} waits: {reason}").format(
            kernel=self._start.kernel, reason=reason
        )
        self._start.update(reason)
        self._log(sentence)
        if self._line is not None:
            with self._line.hidden():
                print(sentence, file=sys.stderr, flush=True)

    def show_progress(self, text: str) -> bool:
        """Report a step; return False, so that the first line of each step is logged too."""
        self._start.update(text)
        if self._line is not None:
            self._line.show(text)
        return False

    def close(self) -> None:
        """Clear the status line of the terminal."""
        if self._line is not None:
            self._line.clear()


def dialog_error(error: BaseException) -> BaseException:
    """Return the error of a start as a front end should show it, one sentence a line.

    JupyterLab's dialog does not wrap lines.
    """
    shown = error
    if isinstance(error, sqlite3.Error) or (
        isinstance(error, OSError) and error.errno in _DISK_ERRORS
    ):
        shown = local_error(error)
    if isinstance(shown, SubmarineError):
        shown.args = (_BETWEEN_SENTENCES.sub("\n", str(shown)),)
    return shown
