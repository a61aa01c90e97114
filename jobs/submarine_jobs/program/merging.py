"""Merge the cells of one file into its text and record the origin of each line.

``from __future__`` imports of later cells move to the top, where Python requires them; the line
numbers of all other lines stay correct.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

from submarine_jobs.errors import UsageError
from submarine_jobs.program.cell import Cell, Notice, notices_of
from submarine_jobs.program.ipython_syntax import clean_source
from submarine_runtime.protocol import CellSegment
from submarine_runtime.translation import _

# A declaration of an encoding (PEP 263) in a cell would apply to the whole file.
_COOKIE = re.compile(r"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")


@dataclass(frozen=True)
class MergedFile:
    """Text of one file, its segments, and notices for the user."""

    text: str
    segments: tuple[CellSegment, ...]
    notices: tuple[Notice, ...]


@dataclass(frozen=True)
class _Piece:
    """Consecutive lines; ``cell`` is None for added lines, ``line`` counts as in the cell."""

    lines: tuple[str, ...]
    cell: Cell | None = None
    line: int = 0


def merge_cells(cells: Sequence[Cell]) -> MergedFile:
    """Join ``cells`` in the given order with a blank line between them.

    Raises
    ------
    UsageError
        If a cell contains IPython syntax that cannot be removed.
    """
    notices: list[Notice] = []
    texts: list[str] = []
    features: list[str] = []
    for number, cell in enumerate(cells):
        notices.extend(notices_of(cell))
        text = cell.source if cell.write_mode else clean_source(cell.source).text
        if number and "__future__" in text:
            text, found, line = _without_future(cell, text)
            features.extend(name for name in found if name not in features)
            if found:
                at = line + cell.first_line - 1
                what = ", ".join(found)
                message = _(
                    "Cell {label}, line {line}: from __future__ import {what} was moved to the top "
                    "of {filename}."
                ).format(label=cell.label, line=at, what=what, filename=cell.filename)
                notices.append(Notice(message, cell.label, at))
        texts.append(text)
    pieces = _pieces(cells, texts, features)
    lines = [line for piece in pieces for line in piece.lines]
    for row, top in enumerate(lines[:2]):
        if (cookie := _COOKIE.match(top)) and cookie[1].lower() not in ("utf-8", "utf8"):
            lines[row] = "# (encoding declaration left out: the file is UTF-8)"
    return MergedFile("".join(line + "\n" for line in lines), _segments(pieces), tuple(notices))


def _pieces(cells: Sequence[Cell], texts: Sequence[str], features: list[str]) -> list[_Piece]:
    pieces: list[_Piece] = []
    for number, (cell, text) in enumerate(zip(cells, texts, strict=True)):
        lines = tuple(text.split("\n"))
        if number:
            pieces.append(_Piece(("",)))
        elif features:
            split = _after_docstring(text)
            moved = (f"from __future__ import {', '.join(features)}",)
            if split:
                pieces.append(_Piece(lines[:split], cell, cell.first_line))
            pieces.append(_Piece(moved))
            if lines[split:]:
                pieces.append(_Piece(lines[split:], cell, cell.first_line + split))
            continue
        pieces.append(_Piece(lines, cell, cell.first_line))
    return pieces


def _segments(pieces: Sequence[_Piece]) -> tuple[CellSegment, ...]:
    segments, start = [], 1
    for piece in pieces:
        end = start + len(piece.lines) - 1
        if piece.cell is not None:
            segments.append(
                CellSegment(start, end, piece.cell.label, piece.cell.cell_id, piece.line)
            )
        start = end + 1
    return tuple(segments)


def _after_docstring(text: str) -> int:
    """Return the number of lines that must precede a ``__future__`` import: the docstring."""
    tree = _parse(text)
    if tree is None or not tree.body or ast.get_docstring(tree, clean=False) is None:
        return 0
    end = tree.body[0].end_lineno or 0
    # A statement on the line of the docstring would precede the import, which Python refuses.
    return end if len(tree.body) < 2 or tree.body[1].lineno > end else 0


def _without_future(cell: Cell, text: str) -> tuple[str, list[str], int]:
    """Return ``text`` without ``from __future__`` imports, their names, and their first line."""
    tree = _parse(text)
    found = [
        node
        for node in (tree.body if tree else [])
        if isinstance(node, ast.ImportFrom) and node.module == "__future__"
    ]
    lines = text.split("\n")
    names: list[str] = []
    for node in reversed(found):
        names[:0] = [_spelled(alias) for alias in node.names]
        first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
        before = lines[first].encode()[: node.col_offset].decode()
        behind = lines[last].encode()[node.end_col_offset :].decode()
        if first != last and (before.strip() or behind.strip(" \t\\").startswith(";")):
            line = node.lineno + cell.first_line - 1
            raise UsageError(
                _(
                    "Cell {label}, line {line}: the import from __future__ shares its lines "
                    "with another statement."
                ).format(label=cell.label, line=line),
                _("Give it a line of its own."),
            )
        lines[first : last + 1] = [before + "pass" + behind] + [""] * (last - first)
    return "\n".join(lines), names, found[0].lineno if found else 0


def _spelled(alias: ast.alias) -> str:
    return f"{alias.name} as {alias.asname}" if alias.asname else alias.name


def _parse(text: str) -> ast.Module | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
