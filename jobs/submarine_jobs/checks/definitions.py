"""Find the names that a Python text binds at its top level, and the cells that define a name.

IPython syntax is removed first. Imports are not followed.
"""

from __future__ import annotations

import ast
import symtable
import warnings
from collections.abc import Iterable
from dataclasses import dataclass

from submarine_jobs.program import Bundle, DocumentCell, clean_source, parse_cell, writes_file


@dataclass(frozen=True)
class Definition:
    """The binding of ``name`` in a cell.

    ``statement`` is the import that binds it, if any. ``code``: a function or class. ``marked``:
    the cell has ``%%submarine``.
    """

    name: str
    label: str
    statement: str = ""
    code: bool = False
    marked: bool = False


def bound_names(text: str) -> dict[str, int]:
    """Return the names that ``text`` binds at its top level, with the first line (else 1)."""
    tree = _parse(text)
    if tree is None:
        return {}
    try:
        table = symtable.symtable(text, "program", "exec")
    except (SyntaxError, ValueError, RecursionError):
        return {}
    names = {
        symbol.get_name(): 1
        for symbol in table.get_symbols()
        if symbol.is_assigned() or symbol.is_imported()
    }
    for name, line in _lines_of_bindings(tree):
        if names.get(name) == 1:
            names[name] = line
    return names


def definitions_in(bundle: Bundle | None, cells: Iterable[DocumentCell]) -> dict[str, Definition]:
    """Return the definitions in ``cells`` that are not part of ``bundle``; later cells override."""
    sent = set()
    if bundle is not None:
        segments = [s for found in bundle.source_map.files.values() for s in found]
        sent = {(s.cell_id, s.cell) if s.cell_id is None else (s.cell_id, "") for s in segments}
    found: dict[str, Definition] = {}
    for cell in cells:
        key = (cell.cell_id, cell.label) if cell.cell_id is None else (cell.cell_id, "")
        if key not in sent and not writes_file(cell.source):
            found.update(_definitions(cell))
    return found


def _definitions(cell: DocumentCell) -> dict[str, Definition]:
    marked = parse_cell(cell.source, cell.tags)
    text = clean_source(marked.body if marked else cell.source, lenient=True).text
    tree = _parse(text)
    if tree is None:
        return {}
    statements = _imports(tree)
    code = {
        node.name
        for node in tree.body
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
    }
    return {
        name: Definition(name, cell.label, statements.get(name, ""), name in code, bool(marked))
        for name in bound_names(text)
    }


def _imports(tree: ast.Module) -> dict[str, str]:
    """Return name -> statement that imports it."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.asname or alias.name.split(".")[0]
                found[name] = ast.unparse(ast.Import([alias]))
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                single = ast.ImportFrom(node.module, [alias], node.level)
                found[alias.asname or alias.name] = ast.unparse(single)
    return found


def _lines_of_bindings(tree: ast.Module) -> list[tuple[str, int]]:
    """Return name and line of bindings outside functions and classes, in any order."""
    found: list[tuple[str, int]] = []
    pending: list[ast.AST] = list(reversed(tree.body))
    while pending:
        node = pending.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.append((node.name, node.lineno))
            continue
        if isinstance(node, ast.Lambda):
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.append((node.id, node.lineno))
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names = [alias.asname or alias.name.split(".")[0] for alias in node.names]
            found.extend((name, node.lineno) for name in names)
        pending.extend(reversed(list(ast.iter_child_nodes(node))))
    return found


def _parse(text: str) -> ast.Module | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
