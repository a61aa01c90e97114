"""Where the sentences of a start go: the server's log, the page that asks, a terminal, a dialog.

Knows neither what they say (``placing``) nor how the page gets them (``starts`` holds them).
"""

from __future__ import annotations

import errno
import re
import sqlite3
import sys
from collections.abc import Callable

from submarine_jobs.commands.grammar import of_this_machine
from submarine_jobs.errors import SubmarineError
from submarine_jobs.frontends import Frontend, StatusLine
from submarine_kernel.remote.pending_starts import Start

_BETWEEN_SENTENCES = re.compile(r"(?<=[.!?]) (?=[A-Z`])")
#: What can be wrong with the disk of this machine, and with nothing else.
_OF_DISKS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES)


class Telling(Frontend):
    """What one start says.

    Parameters
    ----------
    start
        Whose words are kept up to date.
    log
        Takes each line; none is ever renewed.
    terminal
        Whether somebody waits at this process's terminal: not where a server has it for its log.
    """

    def __init__(self, start: Start, log: Callable[[str], object], *, terminal: bool) -> None:
        super().__init__()
        self._start = start
        self._log = log
        self._line = StatusLine() if terminal and sys.stderr.isatty() else None

    def say(self, text: str) -> None:
        """One line of the log."""
        self._log(text)

    def waits(self, words: str) -> None:
        """What the start waits for, each time that it is another thing."""
        sentence = f"The kernel {self._start.kernel} waits: {words}"
        self._start.tell(words)
        self._log(sentence)
        if self._line is not None:
            with self._line.aside():
                print(sentence, file=sys.stderr, flush=True)

    def renew(self, text: str) -> bool:
        """How far it is; the log gets the first line of each step, as where nothing is renewed."""
        self._start.tell(text)
        if self._line is not None:
            self._line.show(text)
        return False

    def end(self) -> None:
        """Take the terminal's line away."""
        if self._line is not None:
            self._line.clear()


def for_a_dialog(error: BaseException) -> BaseException:
    """Why a start failed, as a front end is to show it: sentences, one a line.

    JupyterLab's dialog breaks no line by itself.
    """
    shown = error
    if isinstance(error, sqlite3.Error) or (
        isinstance(error, OSError) and error.errno in _OF_DISKS
    ):
        shown = of_this_machine(error)
    if isinstance(shown, SubmarineError):
        shown.args = (_BETWEEN_SENTENCES.sub("\n", str(shown)),)
    return shown
