"""Parse training scalars from a program's output: Keras' lines, tqdm's postfix.

``45/938 [====>...] - ETA: 3s - loss: 0.31 - accuracy: 0.91``, the same of Keras 3 with its colours,
a line that consists only of such pairs, and ``loss=0.31`` after a tqdm bar. Other text is ignored.
"""

from __future__ import annotations

import re

#: Number of bytes at the end of the text, and of lines in them, that are parsed.
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
#: Words in such lines that are not scalars.
_NONE_OF_THEM = frozenset({"ETA"})


def printed_scalars(text: bytes, *, cut: bool = False) -> dict[str, float]:
    """Return name -> newest value in the end of ``text``.

    Parameters
    ----------
    cut
        ``text`` may begin within a line; the rest of that line could be taken for another name.
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
