"""Filter log output for a terminal: keep colours, remove every other control sequence.

The output of a job is untrusted: it must not move the cursor, set the title, read the clipboard or
send terminal input. The filter is incremental: a sequence may be split across chunks.
"""

from __future__ import annotations

import codecs
import re
from typing import TextIO

#: Maximum length of an incomplete escape sequence that is held back.
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
    """Incremental filter of one stream."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._pending = ""
        self._coloured = False

    def feed(self, data: bytes, *, final: bool = False) -> str:
        """Return the next text to show; ``final`` flushes the rest and resets the colour."""
        text = self._pending + self._decoder.decode(data, final)
        self._pending = ""
        unfinished = _UNFINISHED.search(text)
        if unfinished and not final and len(text) - unfinished.start() <= _MAX_PENDING:
            text, self._pending = text[: unfinished.start()], text[unfinished.start() :]
        shown = _strip(text)
        if _SGR.search(shown):
            self._coloured = True
        return shown + ("\x1b[0m" if final and self._coloured else "")


def filter_for_terminal(text: str, stream: TextIO) -> str:
    """Filter a complete text if ``stream`` is a terminal.

    The text for a file or a pipe is unchanged, so that a printed program stays runnable.
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
