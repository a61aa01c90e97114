"""Merge the logs of several tasks: whole lines, each after the name of its task."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from submarine_jobs.access import LogChunk
from submarine_jobs.text import TerminalFilter

#: Maximum length of a line in bytes; longer lines are split.
MAX_LINE = 64 << 10
_COLOURS = (36, 33, 32, 35, 34, 91, 96, 93, 92, 95, 94)
_RESET = b"\x1b[0m"


class PrefixedLines:
    """Puts the names of tasks before lines.

    Parameters
    ----------
    names
        All tasks; they determine width and colours.
    coloured
        For a terminal or a notebook: coloured names, no control sequences of the logs, and only
        the last state of a progress bar. Otherwise the bytes of the lines are unchanged.
    """

    def __init__(self, names: Iterable[str], *, coloured: bool) -> None:
        self._names = list(names)
        self._coloured = coloured
        self._width = max((len(name) for name in self._names), default=0)
        self._open: dict[tuple[str, str], bytearray] = {}
        self._filters: dict[tuple[str, str], TerminalFilter] = {}

    def feed(self, chunk: LogChunk) -> bytes:
        """Return the lines that ``chunk`` completes."""
        key = (chunk.task, chunk.stream)
        waiting = self._open.setdefault(key, bytearray())
        waiting += chunk.data
        lines = []
        while True:
            end = waiting.find(b"\n", 0, MAX_LINE)
            if end < 0 and len(waiting) <= MAX_LINE:
                break
            length = end + 1 if end >= 0 else MAX_LINE
            lines.append(self._line(key, bytes(waiting[:length])))
            del waiting[:length]
        return b"".join(lines)

    def rest(self) -> Iterator[tuple[str, bytes]]:
        """Yield stream and text of the incomplete lines."""
        for key, waiting in self._open.items():
            if waiting:
                yield key[1], self._line(key, bytes(waiting))
                waiting.clear()

    def _line(self, key: tuple[str, str], line: bytes) -> bytes:
        name = key[0].ljust(self._width)
        body = line.removesuffix(b"\n").removesuffix(b"\r")
        if not self._coloured:
            return f"{name} | ".encode() + body + b"\n"
        # A progress bar writes over itself: its last form counts.
        body = body.rpartition(b"\r")[2]
        shown = self._filters.setdefault(key, TerminalFilter()).feed(body).encode()
        ending = _RESET if b"\x1b" in shown else b""
        return f"\x1b[{self._colour(key[0])}m{name} |\x1b[0m ".encode() + shown + ending + b"\n"

    def _colour(self, name: str) -> int:
        if name not in self._names:
            self._names.append(name)
        return _COLOURS[self._names.index(name) % len(_COLOURS)]
