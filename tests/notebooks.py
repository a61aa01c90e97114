"""Notebook documents for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook


def write_notebook(
    path: Path, *cells: str | tuple[str, list[str]] | NotebookNode, kernel: str = "python3"
) -> Path:
    """Write a notebook with cells of code; return its path.

    Parameters
    ----------
    cells
        The source of a cell, its source and its tags, or a cell.
    """
    made = []
    for number, cell in enumerate(cells):
        source, tags = cell if isinstance(cell, tuple) else (cell, [])
        if not isinstance(source, NotebookNode):
            source = new_code_cell(source, id=f"cell-{number}", metadata={"tags": tags})
        made.append(source)
    spec = {"name": kernel, "display_name": kernel, "language": "python"}
    metadata = {"kernelspec": spec, "language_info": {"name": "python"}}
    nbformat.write(new_notebook(cells=made, metadata=metadata), path)
    return path


def notebook(*cells: str | tuple[str, list[str]] | tuple[str, list[str], str]) -> Any:
    """A document as papermill has it; a third word makes a cell another type."""
    made = nbformat.v4.new_notebook(metadata={"papermill": {}})
    for number, cell in enumerate(cells):
        source, tags, kind = (cell, [], "code") if isinstance(cell, str) else (*cell, "code")[:3]
        new = nbformat.v4.new_markdown_cell if kind == "markdown" else nbformat.v4.new_code_cell
        one = new(source, id=f"cell-{number}")
        one.metadata.update(tags=tags, papermill={"status": "pending"})
        made.cells.append(one)
    return made
