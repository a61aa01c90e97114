"""Write the notebooks of the programs in examples/distributed, which are their only source.

Usage: python scripts/example_notebooks.py. `tests/unit/project/test_example_notebooks.py` checks
that the notebooks are current. A line ``# %%`` of a program begins a cell. A paragraph of its
docstring is the command that runs it: the options of ``submarine run`` become those of
``%submarine run``, and the cells are collected; other programs run in the notebook.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples" / "distributed"
FOLDER = EXAMPLES / "notebooks"
MARK = "# %%\n"
_COMMAND = re.compile(r"^`((?:submarine run|python) [^`]+)`$", re.MULTILINE)


def programs() -> list[Path]:
    """Return the programs that consist of cells."""
    return [path for path in sorted(EXAMPLES.glob("*.py")) if MARK in path.read_text()]


def description(path: Path) -> tuple[str, str]:
    """Return the docstring of a program without its command, and the command."""
    text = ast.get_docstring(ast.parse(path.read_text()))
    assert text is not None
    found = _COMMAND.search(text)
    assert found is not None, f"the docstring of {path.name} has no command"
    return text.replace(f"{found[0]}\n", "").replace("\n\n\n", "\n\n"), found[1]


def cells(path: Path) -> list[str]:
    """Return the text of each cell of a program."""
    _, *parts = path.read_text().split(MARK)
    return [part.strip("\n") for part in parts]


def notebook_of(path: Path) -> str:
    """Return the notebook of a program as text."""
    text, command = description(path)
    title, _, rest = text.partition("\n\n")
    written = f"Written from `{path.name}` by `scripts/example_notebooks.py`."
    introduction = "\n\n".join(filter(None, [f"# {title.rstrip('.')}", rest.strip(), written]))
    made = [new_markdown_cell(introduction, id="introduction")]
    submits = command.startswith("submarine run ")
    if submits:
        made.append(new_code_cell("%load_ext submarine_magics", id="load"))
    for number, source in enumerate(cells(path), 1):
        head = "%%submarine --only\n" if submits else ""
        made.append(new_code_cell(head + source, id=f"cell-{number}"))
    if submits:
        options = command.removeprefix(f"submarine run {path.name} ")
        run = f"%submarine run {path.stem.replace('_', '-')} {options}"
        made.append(new_code_cell(run, id="run"))
    spec = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
    metadata = {"kernelspec": spec, "language_info": {"name": "python"}}
    return str(nbformat.writes(new_notebook(cells=made, metadata=metadata))) + "\n"


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for program in programs():
        (FOLDER / f"{program.stem}.ipynb").write_text(notebook_of(program))
