"""Capture the standard output of verbs from plug-ins, for each paragraph.

These verbs may print instead of returning text, while the process runs several paragraphs. The
output is therefore captured by thread. Other threads print as usual.
"""

from __future__ import annotations

import contextlib
import io
import sys
import threading
from collections.abc import Callable, Iterator
from typing import TextIO

_local = threading.local()


class _ThreadOutput(io.TextIOBase):
    """Standard output that captures the output of registered threads."""

    def __init__(self, own: TextIO) -> None:
        self.own = own

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, text: str) -> int:
        """Capture the text, or print it if this thread is not registered."""
        if not isinstance(text, str):  # click tests by writing bytes whether a stream is binary
            raise TypeError("only text can be written")
        lines: list[str] | None = getattr(_local, "pieces", None)
        if lines is None:
            return self.own.write(text)
        lines.append(text)
        if "\n" in text:
            self._emit(lines)
        return len(text)

    def flush(self) -> None:
        """Flush standard output if this thread is not registered."""
        if getattr(_local, "pieces", None) is None:
            self.own.flush()

    def finish(self) -> None:
        """Emit a last line without line end."""
        self._emit(_local.pieces, last=True)

    def _emit(self, pieces: list[str], *, last: bool = False) -> None:
        whole, newline, rest = "".join(pieces).rpartition("\n")
        pieces[:] = [] if last or not rest else [rest]
        text = whole + newline + rest if last else whole
        if text.strip():
            _local.emit(text.rstrip("\n"))


class _OutputRedirection:
    """Replaces standard output of the process while any thread is registered."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._output: _ThreadOutput | None = None
        self._users = 0

    def enter(self) -> _ThreadOutput:
        with self._lock:
            if self._output is None:
                self._output = _ThreadOutput(sys.stdout)
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


_redirection = _OutputRedirection()


@contextlib.contextmanager
def capture_prints(emit: Callable[[str], None]) -> Iterator[None]:
    """Pass the lines that this thread prints to ``emit``."""
    output = _redirection.enter()
    _local.emit, _local.pieces = emit, []
    try:
        yield
        output.finish()
    finally:
        _local.pieces = None
        _redirection.leave()
