"""A log's bytes made fit for a terminal: colours stay, every other control sequence goes.

What a job prints is untrusted: it must not move the cursor, set the title, read the clipboard or
answer in place of the user. Works piece by piece; a sequence may be cut anywhere.
"""

from __future__ import annotations

import codecs
import re
from typing import TextIO

#: Longest escape sequence that is waited for; what is longer is no sequence of a sane program.
_MAX_PENDING = 4096
_SGR = re.compile(r"\x1b\[[0-9;:]{0,64}m")
_SEQUENCE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI
    r"|\x1b[\]PX^_][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)"  # OSC, DCS, SOS, PM, APC
    r"|\x1b[ -/]*[0-Z\\`-~]"  # everything else that starts with ESC
)
_UNFINISHED = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b\x9c]*(?:\x1b)?|[ -/]*)?\Z")
_CONTROLS = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff"
    "\ufff9-\ufffb\U000e0000-\U000e007f]"
)


class TerminalFilter:
    """Filters one stream; keep one for each stream that is shown."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._pending = ""
        self._coloured = False

    def feed(self, data: bytes, *, final: bool = False) -> str:
        """The next piece of text to show; ``final`` gives the rest and ends any colour."""
        text = self._pending + self._decoder.decode(data, final)
        self._pending = ""
        unfinished = _UNFINISHED.search(text)
        if unfinished and not final and len(text) - unfinished.start() <= _MAX_PENDING:
            text, self._pending = text[: unfinished.start()], text[unfinished.start() :]
        shown = _strip(text)
        if _SGR.search(shown):
            self._coloured = True
        return shown + ("\x1b[0m" if final and self._coloured else "")


def for_terminal(text: str, stream: TextIO) -> str:
    """Text that is whole, for a stream: filtered as a log where that is a terminal.

    A file or a pipe gets the text as it is: a program that is printed stays that program.
    """
    return _strip(text) if stream.isatty() else text


def _strip(text: str) -> str:
    parts: list[str] = []
    place = 0
    for match in _SEQUENCE.finditer(text):
        parts.append(_CONTROLS.sub("", text[place : match.start()]))
        if _SGR.fullmatch(match[0]):
            parts.append(match[0])
        place = match.end()
    parts.append(_CONTROLS.sub("", text[place:]))
    return "".join(parts)
