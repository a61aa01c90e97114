"""What a verb of a plug-in prints, brought into the paragraph in which it was typed.

Such a verb may print where the others return: to the output of the process, which has several
paragraphs at the same time. Sorts it by thread; what other threads print goes where it went.
"""

from __future__ import annotations

import contextlib
import io
import sys
import threading
from collections.abc import Callable, Iterator
from typing import TextIO

_local = threading.local()


class _ByThread(io.TextIOBase):
    """The output of the process, but for threads that have one of their own."""

    def __init__(self, own: TextIO) -> None:
        self.own = own

    def writable(self) -> bool:
        """Yes."""
        return True

    def write(self, text: str) -> int:
        """Print in this thread's way."""
        if not isinstance(text, str):  # so that nobody takes it for one of bytes, as click tries
            raise TypeError("text is wanted")
        lines: list[str] | None = getattr(_local, "pieces", None)
        if lines is None:
            return self.own.write(text)
        lines.append(text)
        if "\n" in text:
            self._say(lines)
        return len(text)

    def flush(self) -> None:
        """Only what is not a paragraph's has to be."""
        if getattr(_local, "pieces", None) is None:
            self.own.flush()

    def finish(self) -> None:
        """Say a last line that has no end."""
        self._say(_local.pieces, last=True)

    def _say(self, pieces: list[str], *, last: bool = False) -> None:
        whole, newline, rest = "".join(pieces).rpartition("\n")
        pieces[:] = [] if last or not rest else [rest]
        said = whole + newline + rest if last else whole
        if said.strip():
            _local.say(said.rstrip("\n"))


class _Installed:
    """The one of this process, in place of its output while any thread needs it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._output: _ByThread | None = None
        self._users = 0

    def enter(self) -> _ByThread:
        with self._lock:
            if self._output is None:
                self._output = _ByThread(sys.stdout)
                sys.stdout = self._output
            self._users += 1
            return self._output

    def leave(self) -> None:
        with self._lock:
            self._users -= 1
            if self._users or self._output is None:
                return
            if sys.stdout is self._output:
                sys.stdout = self._output.own
            self._output = None


_installed = _Installed()


@contextlib.contextmanager
def printed_to(say: Callable[[str], None]) -> Iterator[None]:
    """Give lines that this thread prints within to ``say``."""
    output = _installed.enter()
    _local.say, _local.pieces = say, []
    try:
        yield
        output.finish()
    finally:
        _local.pieces = None
        _installed.leave()
