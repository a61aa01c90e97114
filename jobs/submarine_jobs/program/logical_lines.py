"""Find the beginnings of Python statements in a text that need not be valid Python.

A linear scan handles strings, f-strings, comments, brackets and continuation lines.
``ipython_syntax`` uses it to distinguish a ``%`` at the start of a statement from one inside a
string or an expression.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_ESCAPES = "%!?,;/"
_CODE = re.compile(r"""[#'"()\[\]{}\\\n=?]|(?<![\w'"])[A-Za-z]{1,2}(?=['"])""")
_OPEN, _CLOSE = "([{", ")]}"


@dataclass
class LogicalLine:
    """One statement line; ``start`` and ``end`` are offsets, ``end`` excludes the newline.

    ``escape``: its first character is a command of IPython. ``assigns`` is the offset after an
    ``=`` that precedes ``!`` or ``%``. ``help``: it has a ``?`` outside strings and comments.
    """

    start: int
    end: int
    escape: bool = False
    assigns: int | None = None
    help: bool = False


@dataclass
class _Scan:
    text: str
    position: int = 0
    lines: list[LogicalLine] = field(default_factory=list)


def logical_lines(text: str) -> list[LogicalLine]:
    """Return the statement lines of ``text`` in order, including blank lines, in linear time."""
    scan = _Scan(text)
    while scan.position < len(text):
        line = LogicalLine(scan.position, len(text))
        first = _skip_blanks(text, scan.position)
        if first < len(text) and text[first] in _ESCAPES:
            line.escape = True
            scan.position = _end_of_command(text, first)
        else:
            scan.position = first
            _scan_code(scan, line)
        line.end = scan.position
        scan.lines.append(line)
        scan.position += 1
    return scan.lines


def _skip_blanks(text: str, position: int) -> int:
    while position < len(text) and text[position] in " \t\f":
        position += 1
    return position


def _end_of_command(text: str, position: int) -> int:
    """Return the offset of the newline that ends a command; a backslash continues the line."""
    while True:
        end = text.find("\n", position)
        if end < 0:
            return len(text)
        if text[end - 1] != "\\":
            return end
        position = end + 1


def _scan_code(scan: _Scan, line: LogicalLine) -> None:
    """Advance to the newline that ends the statement at ``scan.position``."""
    text, depth = scan.text, 0
    # Each entry is an f-string whose replacement field is open: its quote and the depth outside.
    fields: list[tuple[str, int]] = []
    position, prefix = scan.position, ""
    while (match := _CODE.search(text, position)) is not None:
        symbol, position = match.group(), match.end()
        if symbol.isalpha():
            prefix = symbol.lower()
            continue
        if symbol in "'\"":
            quote = symbol * 3 if text.startswith(symbol * 3, match.start()) else symbol
            position = match.start() + len(quote)
            position, opened = _skip_string(text, position, quote, "f" in prefix or "t" in prefix)
            if opened:
                fields.append((quote, depth))
                depth = 0
        elif symbol == "}" and fields and depth == 0:
            quote, depth = fields.pop()
            position, opened = _skip_string(text, position, quote, True)
            if opened:
                fields.append((quote, depth))
                depth = 0
        elif symbol == "\n":
            if depth == 0 and not fields:
                scan.position = match.start()
                return
        else:
            depth = _plain_token(text, symbol, position, depth, line, bool(fields))
            if symbol == "#":
                end = text.find("\n", position)
                position = len(text) if end < 0 else end
            elif symbol == "\\" and text.startswith("\n", position):
                position += 1
        prefix = ""
    scan.position = len(text)


def _plain_token(
    text: str, symbol: str, position: int, depth: int, line: LogicalLine, in_field: bool
) -> int:
    """Update the line for a symbol, and return the new bracket depth."""
    if symbol in _OPEN:
        return depth + 1
    if symbol in _CLOSE:
        return max(0, depth - 1)
    if symbol == "?":
        line.help = True
    elif symbol == "=" and depth == 0 and not in_field:
        before = text[position - 2] if position >= 2 else ""
        after = _skip_blanks(text, position)
        if before not in "=!<>:" and text[after : after + 1] in ("!", "%"):
            line.assigns = after
    return depth


def _skip_string(text: str, position: int, quote: str, formatted: bool) -> tuple[int, bool]:
    """Return the offset after the string, or after the ``{`` of an f-string's field (and True)."""
    pattern = _FORMATTED if formatted else _STRING
    while (match := pattern.search(text, position)) is not None:
        symbol = match.group()
        if symbol == "\n":
            if len(quote) == 1:
                return match.start(), False
        elif symbol == "{":
            return match.end(), True
        elif symbol in ("'", '"') and text.startswith(quote, match.start()):
            return match.start() + len(quote), False
        position = match.end()
    return len(text), False


_STRING = re.compile(r"""\\[\s\S]|['"\n]""")
_FORMATTED = re.compile(r"""\\[\s\S]|\{\{|\{|['"\n]""")
