"""Training scalars in what a program prints: Keras' lines, tqdm's postfix. Reads no file.

``45/938 [====>...] - ETA: 3s - loss: 0.31 - accuracy: 0.91``, the same of Keras 3 with its colours,
a line that is nothing but such pairs, and ``loss=0.31`` behind a tqdm bar. Guesses nothing from any
other text.
"""

from __future__ import annotations

import re

#: Bytes at the end of the text that are looked at, and lines in them.
MAX_TEXT = 1 << 13
MAX_LINES = 64
_NUMBER = rb"[-+]?(?:\d{1,18}(?:\.\d{0,18})?|\.\d{1,18})(?:[eE][-+]?\d{1,3})?|nan|inf|-inf"
_COLOUR = re.compile(rb"\x1b\[[0-9;]*m")
_END = re.compile(rb"[\r\n\x08]+")
_STEP = re.compile(rb"\s{0,9}\d{1,9}/\d{1,9}\s")
_PAIR = re.compile(rb"(?:^|- )\s{0,3}([A-Za-z_][\w./]{0,47}): (" + _NUMBER + rb")(?=\s*(?:-|$))")
_PAIRS_ONLY = re.compile(
    rb"\s*[A-Za-z_][\w./]{0,47}: (?:"
    + _NUMBER
    + rb")(?:\s+-\s+[A-Za-z_][\w./]{0,47}: (?:"
    + _NUMBER
    + rb")){0,15}\s*"
)
_BAR = re.compile(
    rb"\d{1,3}%\|[^|]{0,300}\| *[\d.]+[kMG]?/[\d.]+[kMG]? \[[^\]]{0,80}?, ?[^\]]{0,200}\]"
)
_POSTFIX = re.compile(rb", ([A-Za-z_]\w{0,47})=(" + _NUMBER + rb")(?=[,\]])")
#: Words that such lines hold beside scalars.
_NONE_OF_THEM = frozenset({"ETA"})


def printed_scalars(text: bytes, *, cut: bool = False) -> dict[str, float]:
    """Name -> value, the newest of each, in the end of ``text``.

    Parameters
    ----------
    cut
        ``text`` may begin within a line, whose rest would look like a line with another name.
    """
    lines = _END.split(_COLOUR.sub(b"", text[-MAX_TEXT:]))
    if cut or len(text) > MAX_TEXT:
        del lines[0]
    found: dict[str, float] = {}
    for line in reversed(lines[-MAX_LINES:]):
        for name, value in _of_line(line):
            key = name.decode("ascii", "replace")
            if key not in _NONE_OF_THEM:
                found.setdefault(key, float(value))
    return found


def _of_line(line: bytes) -> list[tuple[bytes, bytes]]:
    if b": " in line and (_STEP.match(line) or _PAIRS_ONLY.fullmatch(line)):
        return _PAIR.findall(line)
    if b"%|" in line and _BAR.search(line):
        return _POSTFIX.findall(line)
    return []
