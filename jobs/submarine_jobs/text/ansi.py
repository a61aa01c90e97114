"""Render terminal output as text or HTML: keep colours, apply changes within a line, drop the rest.

Emulates a terminal of one line: carriage returns and backspaces overwrite text, so a progress bar
takes one line. SGR sequences (16, 256 and true colours) become styles. Other escape sequences are
removed, so the lines of a program that moves the cursor up follow each other. The time is linear in
the length of the input.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from submarine_jobs.text.sanitize import escape_html, printable

T = TypeVar("T")

_TOKEN = re.compile(
    r"(?P<run>[^\x00-\x08\x0a-\x1f\x7f\x84\x85\x88\x90\x98\x9b\x9d-\x9f]+)"
    r"|(?P<csi>(?:\x1b\[|\x9b)(?P<args>[0-?]*)[ -/]*(?P<final>[@-~])?)"
    r"|(?P<string>(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?)"
    r"|\x1b[ -/]*[0-~]?"
    r"|(?P<control>.)",
    re.DOTALL,
)
_BASIC = [
    *("#767676", "#e5534b", "#3fb950", "#d2a022", "#58a6ff", "#c678dd", "#39c5cf", "#c9d1d9"),
    *("#9aa0a6", "#ff7b72", "#7ee787", "#e3c14c", "#79c0ff", "#e2a8ff", "#6fe3e8", "#ffffff"),
]


@dataclass(frozen=True)
class Style:
    """Style of a piece of text; colours are ``#rrggbb`` or None."""

    colour: str | None = None
    background: str | None = None
    bold: bool = False
    dim: bool = False
    italic: bool = False
    underline: bool = False
    inverse: bool = False
    strike: bool = False

    def css(self, *, text: str = "#d4d4d4", box: str = "#1b1f24") -> str:
        """Return inline CSS; ``text`` and ``box`` are the colours that inverse text exchanges."""
        colour, background = self.colour, self.background
        if self.inverse:
            colour, background = background or box, colour or text
        rules = []
        if colour:
            rules.append(f"color:{colour}")
        if background:
            rules.append(f"background-color:{background}")
        if self.bold:
            rules.append("font-weight:bold")
        if self.dim:
            rules.append("opacity:.7")
        if self.italic:
            rules.append("font-style:italic")
        lines = [
            w for on, w in ((self.underline, "underline"), (self.strike, "line-through")) if on
        ]
        if lines:
            rules.append(f"text-decoration:{' '.join(lines)}")
        return ";".join(rules)


PLAIN = Style()


@dataclass
class _Line:
    """One line of the terminal: a character and a style for each cell, and the cursor."""

    cells: list[str] = field(default_factory=list)
    styles: list[Style] = field(default_factory=list)
    cursor: int = 0

    def write(self, run: str, style: Style) -> None:
        end = self.cursor + len(run)
        self.cells[self.cursor : end] = run
        self.styles[self.cursor : end] = [style] * len(run)
        self.cursor = end

    def erase_rest(self) -> None:
        del self.cells[self.cursor :], self.styles[self.cursor :]

    def pieces(self) -> Iterator[tuple[str, Style]]:
        start = 0
        for place in range(1, len(self.cells) + 1):
            if place == len(self.cells) or self.styles[place] is not self.styles[start]:
                yield "".join(self.cells[start:place]), self.styles[start]
                start = place


def _lines(text: str) -> list[_Line]:
    lines, style = [_Line()], PLAIN
    for token in _TOKEN.finditer(text):
        line = lines[-1]
        if token["run"] is not None:
            line.write(token["run"], style)
        elif token["csi"] is not None:
            if token["final"] == "m":
                style = _after_sgr(style, token["args"])
            elif token["final"] == "K":
                if token["args"] == "2":
                    line.cursor = 0
                if token["args"] in ("", "0", "2"):
                    line.erase_rest()
        elif (control := token["control"]) is not None:
            if control in "\n\x0b\x0c\x84\x85":
                lines.append(_Line())
            elif control == "\r":
                line.cursor = 0
            elif control in "\b\x88":
                line.cursor = max(line.cursor - 1, 0)
    return lines


def _after_sgr(style: Style, arguments: str) -> Style:
    """Return the style after ``ESC [ arguments m``; unknown numbers are ignored."""
    if not re.fullmatch(r"[0-9;:]{0,200}", arguments):
        return style
    numbers = [int(word[:4]) if word else 0 for word in re.split("[;:]", arguments)]
    place = 0
    while place < len(numbers):
        number = numbers[place]
        place += 1
        if number in (38, 48):
            colour, used = _extended(numbers[place : place + 5], arguments)
            place += used
            if colour:
                name = "colour" if number == 38 else "background"
                extended: dict[str, Any] = {name: colour}
                style = replace(style, **extended)
        elif number == 0:
            style = PLAIN
        else:
            style = replace(style, **_simple(number))
    return style


_FLAGS: dict[int, dict[str, bool]] = {
    1: {"bold": True},
    2: {"dim": True},
    3: {"italic": True},
    4: {"underline": True},
    7: {"inverse": True},
    9: {"strike": True},
    21: {"underline": True},
    22: {"bold": False, "dim": False},
    23: {"italic": False},
    24: {"underline": False},
    27: {"inverse": False},
    29: {"strike": False},
}


def _simple(number: int) -> dict[str, Any]:
    if number in _FLAGS:
        return {**_FLAGS[number]}
    for first, name, bright in (
        (30, "colour", 0),
        (40, "background", 0),
        (90, "colour", 8),
        (100, "background", 8),
    ):
        if first <= number <= first + 7:
            return {name: _BASIC[number - first + bright]}
    return {39: {"colour": None}, 49: {"background": None}}.get(number, {})


def _extended(numbers: list[int], arguments: str) -> tuple[str | None, int]:
    """Return the colour after 38 or 48, and the count of its numbers."""
    if numbers[:1] == [5] and len(numbers) >= 2:
        return _indexed(numbers[1]), 2
    if numbers[:1] == [2]:
        # With colons, a colour space (usually empty) precedes red, green and blue.
        skip = 2 if ":" in arguments and len(numbers) == 5 else 1
        rgb = numbers[skip : skip + 3]
        if len(rgb) == 3 and all(value <= 255 for value in rgb):
            return "#{:02x}{:02x}{:02x}".format(*rgb), skip + 3
        return None, skip + len(rgb)
    return None, 1


def _indexed(number: int) -> str | None:
    if number < 16:
        return _BASIC[number]
    if number < 232:
        number -= 16
        levels = [0, 95, 135, 175, 215, 255]
        rgb = (levels[number // 36], levels[number // 6 % 6], levels[number % 6])
        return "#{:02x}{:02x}{:02x}".format(*rgb)
    if number < 256:
        return "#{0:02x}{0:02x}{0:02x}".format(8 + 10 * (number - 232))
    return None


def to_text(text: str, *, lines: int | None = None, width: int | None = None) -> str:
    """Return plain text: the last ``lines`` lines, each cut to ``width`` characters."""
    shown = _shown("".join(line.cells).rstrip() for line in _lines(text))
    return "\n".join(printable(line, width or len(line)) for line in _last(shown, lines))


def to_html(text: str, *, lines: int | None = None, width: int = 1000) -> str:
    """Return HTML for a ``<pre>``: escaped text with colours as ``<span style=...>``."""
    kept = _last(_shown_lines(_lines(text)), lines)
    return "\n".join(_line_html(line, width) for line in kept)


def _line_html(line: _Line, width: int) -> str:
    parts, left = [], width
    for piece, style in line.pieces():
        words = escape_html(piece, left)
        css = style.css()
        parts.append(f'<span style="{css}">{words}</span>' if css else words)
        left -= len(piece)
        if left <= 0:
            break
    return "".join(parts)


def _shown(lines: Iterator[str]) -> list[str]:
    kept = list(lines)
    while kept and not kept[-1]:
        kept.pop()
    return kept


def _shown_lines(lines: list[_Line]) -> list[_Line]:
    while lines and not any(not cell.isspace() for cell in lines[-1].cells):
        lines.pop()
    return lines


def _last(items: list[T], count: int | None) -> list[T]:
    return items if count is None else items[-count:] if count else []
