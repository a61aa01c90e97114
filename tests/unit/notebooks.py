"""A notebook made of sources, for tests."""

from __future__ import annotations

from typing import Any

import nbformat


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
