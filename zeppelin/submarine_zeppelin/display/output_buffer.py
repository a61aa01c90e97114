"""Buffer the growing output of a paragraph and keep it within Zeppelin's limit.

Plain text is appended as it arrives. If it contains terminal control sequences or exceeds the
limit, the whole output is replaced a few times a second: as HTML with colors, and cut at its
beginning.
"""

from __future__ import annotations

import re
import threading
import time
from dataclasses import dataclass

from submarine_jobs.display import BOX
from submarine_jobs.text import ansi
from submarine_runtime.translation import _, ngettext
from submarine_zeppelin.interface import Kind, Message, Output, last_lines

#: Minimum seconds between two complete outputs.
INTERVAL = 0.4
#: Maximum size of one image or HTML page, and of all together, in characters.
MAX_RICH, MAX_ALL_RICH = 4 << 20, 16 << 20
#: Container for a long log, scrolled to its end as Zeppelin's text output is.
_SCROLLED = (
    '<div style="max-height:480px;overflow:auto;display:flex;flex-direction:column-reverse">'
    '<div style="flex:none">{}</div></div>'
)
_TERMINAL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_WIDTH = 4000


@dataclass
class _Piece:
    kind: Kind
    data: str
    display: str = ""
    #: Number of dropped lines, and of dropped characters of the first line.
    cut: int = 0
    cut_within: int = 0
    #: Whether the text is a log, which is shown as in a terminal.
    log: bool = False
    #: Text that is shown if there is not enough space for the HTML.
    plain: str = ""

    @property
    def terminal(self) -> bool:
        if self.kind is not Kind.TEXT or self.display:
            return False
        return self.log or _TERMINAL.search(self.data) is not None


class OutputBuffer:
    """Output of one paragraph. Thread-safe.

    Parameters
    ----------
    limit
        Maximum number of characters of all text.
    interval
        Minimum seconds between two complete outputs; 0: show each change at once.
    """

    def __init__(self, output: Output, limit: int, interval: float = INTERVAL) -> None:
        self._output = output
        self._interval = interval
        self._lock = threading.RLock()
        self._total = limit * 9 // 10
        # Leave space for notices and HTML tags.
        self._limit = limit * 3 // 4
        self._pieces: list[_Piece] = []
        self._text = 0
        self._shown = 0.0
        self._dirty = self._clear_next = False
        self._whole = not interval

    @property
    def empty(self) -> bool:
        """Whether the output has no contents."""
        with self._lock:
            return not any(piece.data for piece in self._pieces)

    @property
    def size(self) -> int:
        """Number of characters in memory."""
        with self._lock:
            return sum(len(piece.data) + len(piece.plain) for piece in self._pieces)

    def write(self, text: str, *, log: bool = False) -> None:
        """Append text that a program has printed, or a part of a log."""
        if not text:
            return
        # A lone surrogate cannot be encoded for the server.
        text = text.encode("utf-8", "replace").decode()
        with self._lock:
            self._apply_clear()
            last = self._pieces[-1] if self._pieces else None
            if last is None or last.kind is not Kind.TEXT or last.display or last.log is not log:
                self._pieces.append(_Piece(Kind.TEXT, "", log=log))
            piece = self._pieces[-1]
            piece.data += text
            self._text += len(text)
            if self._text > self._limit or log or _TERMINAL.search(text):
                self._whole = True
            if self._text > 2 * self._limit:
                self._shorten()
            if self._whole or self._dirty:
                self._dirty = True
                self.refresh()
            else:
                self._output.append(text)

    def add(self, kind: Kind, data: str, display: str = "", plain: str = "") -> None:
        """Add a table, image or HTML.

        Parameters
        ----------
        display
            Id for later updates.
        plain
            Text that is shown if there is not enough space for the HTML.
        """
        with self._lock:
            self._apply_clear()
            self._pieces.append(_Piece(kind, self._bounded(kind, data), display, plain=plain))
            self._dirty = True
            self.refresh()

    def update(self, display: str, kind: Kind, data: str, plain: str = "") -> None:
        """Replace the messages with a display id."""
        with self._lock:
            for piece in self._pieces:
                if display and piece.display == display:
                    piece.kind, piece.plain = kind, plain
                    piece.data = self._bounded(kind, data)
                    self._dirty = True
            self.refresh()

    def remove(self, display: str) -> None:
        """Remove the messages with a display id."""
        with self._lock:
            self._pieces = [piece for piece in self._pieces if piece.display != display]
            self._dirty = True
            self.refresh()

    def clear(self, *, wait: bool = False) -> None:
        """Remove all contents; with ``wait`` only when new contents arrive."""
        with self._lock:
            if wait:
                self._clear_next = True
                return
            self._pieces.clear()
            self._text, self._whole, self._dirty = 0, not self._interval, True
            self.refresh()

    def refresh(self) -> None:
        """Show unsent contents if the last update is long enough ago."""
        with self._lock:
            if self._dirty and time.monotonic() - self._shown >= self._interval:
                self.show()

    def show(self) -> None:
        """Show the contents now."""
        with self._lock:
            self._output.show(self.messages())
            self._shown, self._dirty = time.monotonic(), False

    def messages(self) -> tuple[Message, ...]:
        """Return the whole output within the limits."""
        with self._lock:
            self._shorten()
            pieces = [piece for piece in self._pieces if piece.data]
            share = max(self._total // max(1, len(pieces)), self._total // 4)
            return tuple(self._message(piece, share) for piece in pieces)

    def _apply_clear(self) -> None:
        if self._clear_next:
            self._clear_next = False
            self.clear()

    def _bounded(self, kind: Kind, data: str) -> str:
        used = sum(len(piece.data) for piece in self._pieces if piece.kind is not Kind.TEXT)
        if len(data) > MAX_RICH or used + len(data) > MAX_ALL_RICH:
            return "" if kind is Kind.IMG else f"<p>An output of {len(data):,} characters.</p>"
        return data

    def _shorten(self) -> None:
        """Drop the oldest text beyond the limit."""
        excess = self._text - self._limit
        for piece in self._pieces:
            if excess <= 0:
                return
            if piece.kind is not Kind.TEXT or piece.display or not piece.data:
                continue
            offset = min(excess, len(piece.data))
            line_end = piece.data.find("\n", offset) + 1
            if 0 < line_end < len(piece.data):
                offset = line_end
            cut = piece.data[:offset]
            piece.cut += cut.count("\n")
            # A line that is longer than the limit is cut within the line.
            within = len(cut) - (cut.rfind("\n") + 1)
            piece.cut_within = within if "\n" in cut else piece.cut_within + within
            piece.data = piece.data[offset:]
            self._text -= offset
            excess -= offset

    def _message(self, piece: _Piece, share: int) -> Message:
        if piece.terminal:
            limit = min(self._limit, share) - len(_SCROLLED) if piece.log else self._limit
            page = terminal_html(piece.data, limit, before=piece.cut)
            return Message(Kind.HTML, _SCROLLED.format(page) if piece.log else page)
        if piece.plain and len(piece.data) > share:
            text = last_lines(piece.plain, share)
            lines = piece.plain.count("\n", 0, len(piece.plain) - len(text))
            return Message(Kind.TEXT, f"{omitted_notice(lines)}{text}\n")
        return Message(piece.kind, omitted_notice(piece.cut, piece.cut_within) + piece.data)


def omitted_notice(lines: int, characters: int = 0) -> str:
    """Return a notice about omitted lines and characters; empty if there are none."""
    words = []
    if lines:
        words.append(ngettext("{lines:,} line", "{lines:,} lines", lines).format(lines=lines))
    if characters:
        words.append(_("{characters:,} characters of a line").format(characters=characters))
    return _("... {words} before these\n").format(words=" and ".join(words)) if words else ""


def terminal_html(text: str, limit: int, *, before: int = 0) -> str:
    """Convert terminal text to HTML with colors, and keep the last lines within ``limit``.

    Parameters
    ----------
    before
        Number of lines that were already dropped.
    """
    shown = ansi.to_html(text, width=_WIDTH)
    if len(shown) > limit:
        # The markup of colors may be longer than the text.
        offset = shown.find("\n", len(shown) - limit) + 1
        before += shown.count("\n", 0, offset)
        shown = shown[offset:] if offset else ""
        shown = shown or ansi.to_html(ansi.to_text(text, lines=1, width=limit // 8), width=_WIDTH)
    return f'<pre style="{BOX}">{omitted_notice(before)}{shown}</pre>'
