"""A paragraph's output while it grows: streamed where that is cheap, bounded in every case.

Plain text goes to the page as it comes. Once there are colours, lines that are written over, or
more than Zeppelin takes, the whole output is shown anew, a few times a second: coloured, the last
lines of what is too long. Knows nothing of what produces the output.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass

from submarine_jobs.display import BOX, ansi
from submarine_zeppelin.interface import Kind, Message, Output

#: Seconds between two whole outputs.
PACE = 0.4
#: Characters of pictures and pages, one and all, that are shown although they are no text.
MAX_RICH, MAX_ALL_RICH = 4 << 20, 16 << 20
_TERMINAL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_WIDTH = 4000


@dataclass
class _Piece:
    kind: Kind
    data: str
    display: str = ""
    #: Lines, and characters of a line, that are not kept.
    cut: int = 0
    cut_within: int = 0

    @property
    def terminal(self) -> bool:
        return self.kind is Kind.TEXT and _TERMINAL.search(self.data) is not None


class Screen:
    """One paragraph's output; used from one thread.

    Parameters
    ----------
    limit
        Characters that all text together may have.
    """

    def __init__(self, output: Output, limit: int) -> None:
        self._output = output
        # Room for the notes and the tags around it.
        self._limit = limit * 3 // 4
        self._pieces: list[_Piece] = []
        self._text = 0
        self._shown = 0.0
        self._dirty = self._whole = self._clear_next = False

    def text(self, words: str) -> None:
        """More text of a stream, as a program prints it."""
        if not words:
            return
        # A lone surrogate could not be sent on.
        words = words.encode("utf-8", "replace").decode()
        self._take_clear()
        if not self._pieces or self._pieces[-1].kind is not Kind.TEXT:
            self._pieces.append(_Piece(Kind.TEXT, ""))
        piece = self._pieces[-1]
        piece.data += words
        self._text += len(words)
        if self._text > self._limit or _TERMINAL.search(words):
            self._whole = True
        if self._text > 2 * self._limit:
            self._shorten()
        if self._whole or self._dirty:
            self._dirty = True
            self.tick()
        else:
            self._output.append(words)

    def put(self, kind: Kind, data: str, display: str = "") -> None:
        """A table, a picture or a page; ``display`` names one that may be renewed."""
        self._take_clear()
        self._pieces.append(_Piece(kind, self._bounded(kind, data), display))
        self._dirty = True
        self.tick()

    def renew(self, display: str, kind: Kind, data: str) -> None:
        """Replace what was put under a name, if anything was."""
        for piece in self._pieces:
            if display and piece.display == display:
                piece.kind, piece.data = kind, self._bounded(kind, data)
                self._dirty = True
        self.tick()

    def clear(self, *, wait: bool = False) -> None:
        """Forget everything; with ``wait`` as soon as there is something new."""
        if wait:
            self._clear_next = True
            return
        self._pieces.clear()
        self._text, self._whole, self._dirty = 0, False, True
        self.tick()

    def tick(self) -> None:
        """Show what is not shown yet, if the last time is long enough ago."""
        if self._dirty and time.monotonic() - self._shown >= PACE:
            self._output.show(self.messages())
            self._shown, self._dirty = time.monotonic(), False

    def messages(self) -> tuple[Message, ...]:
        """The whole output, within its bounds."""
        self._shorten()
        return tuple(self._message(piece) for piece in self._pieces if piece.data)

    def _take_clear(self) -> None:
        if self._clear_next:
            self._clear_next = False
            self.clear()

    def _bounded(self, kind: Kind, data: str) -> str:
        used = sum(len(piece.data) for piece in self._pieces if piece.kind is not Kind.TEXT)
        if len(data) > MAX_RICH or used + len(data) > MAX_ALL_RICH:
            return "" if kind is Kind.IMG else f"<p>An output of {len(data):,} characters.</p>"
        return data

    def _shorten(self) -> None:
        """Cut the oldest text until what is left is within the limit."""
        excess = self._text - self._limit
        for piece in self._pieces:
            if excess <= 0:
                return
            if piece.kind is not Kind.TEXT or not piece.data:
                continue
            place = min(excess, len(piece.data))
            line_end = piece.data.find("\n", place) + 1
            if 0 < line_end < len(piece.data):
                place = line_end
            cut = piece.data[:place]
            piece.cut += cut.count("\n")
            # A line that is longer than all that is shown is cut within.
            within = len(cut) - (cut.rfind("\n") + 1)
            piece.cut_within = within if "\n" in cut else piece.cut_within + within
            piece.data = piece.data[place:]
            self._text -= place
            excess -= place

    def _message(self, piece: _Piece) -> Message:
        if not piece.terminal:
            return Message(piece.kind, lines_before(piece.cut, piece.cut_within) + piece.data)
        return Message(Kind.HTML, terminal_html(piece.data, self._limit, before=piece.cut))


def lines_before(lines: int, characters: int = 0) -> str:
    """What is said above text of which the beginning is not shown; empty where nothing is cut."""
    words = []
    if lines:
        words.append(f"{lines:,} line{'' if lines == 1 else 's'}")
    if characters:
        words.append(f"{characters:,} characters of a line")
    return f"... {' and '.join(words)} before these\n" if words else ""


def terminal_html(text: str, limit: int, *, before: int = 0) -> str:
    """Text of a terminal as a page: escaped, in its colours, its last lines within ``limit``.

    Parameters
    ----------
    before
        Lines that were cut already.
    """
    shown = ansi.to_html(text, width=_WIDTH)
    if len(shown) > limit:
        # Colours may take more room than the text.
        place = shown.find("\n", len(shown) - limit) + 1
        before += shown.count("\n", 0, place)
        shown = shown[place:] if place else ""
        shown = shown or ansi.to_html(ansi.to_text(text, lines=1, width=limit // 8), width=_WIDTH)
    return f'<pre style="{BOX}">{lines_before(before)}{shown}</pre>'
