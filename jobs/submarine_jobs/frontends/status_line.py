"""The last line of a terminal while one waits: rewritten in place, out of the way of all else.

Does nothing where stderr is no terminal. Does not know what is waited for (``cli_waiting``).
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import threading
from collections.abc import Iterator

from submarine_jobs.text import one_line

_ERASE = "\r\x1b[K"


class StatusLine:
    """One line on stderr; safe to use from several threads.

    Attributes
    ----------
    free
        Whether the cursor stands at the beginning of a line that nobody else writes on.
    """

    def __init__(self) -> None:
        self.free = True
        self._able = sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"
        self._shown = ""
        self._lock = threading.RLock()

    def show(self, text: str) -> bool:
        """Put ``text`` in place of what the line says; False where this is no terminal."""
        with self._lock:
            if self._able and self.free and text != self._shown:
                self._shown = text
                width = max(shutil.get_terminal_size().columns - 1, 20)
                sys.stderr.write(_ERASE + one_line(text, width))
                sys.stderr.flush()
        return self._able

    def clear(self) -> None:
        """Take the line away."""
        with self._lock:
            if self._shown:
                self._shown = ""
                sys.stderr.write(_ERASE)
                sys.stderr.flush()

    @contextlib.contextmanager
    def aside(self) -> Iterator[StatusLine]:
        """While something else is written: the line is away, and nobody brings it back."""
        with self._lock:
            self.clear()
            yield self
