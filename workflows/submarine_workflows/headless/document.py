"""Change a notebook document before and after a run: parameters, cells, errors.

The functions change the given document and perform no I/O.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence

from nbformat import NotebookNode, from_dict
from nbformat.v4 import new_code_cell

from submarine_jobs.errors import UsageError
from submarine_jobs.program import (
    MAGIC,
    ONLY_TAG,
    parse_cell,
    parse_options,
    starts_job,
    tags_of_metadata,
)
from submarine_jobs.text import printable

PARAMETERS, INJECTED = "parameters", "injected-parameters"
#: Id of the cell that this run adds to submit the collected cells.
RUN_CELL = "submarine-run"
_LOADS = re.compile(r"^[ \t]*%(?:re)?load_ext[ \t]", re.M)
_HEADING = re.compile(r"^(#{1,6})[ \t]+(.+?)[ \t#]*$", re.M)
_UNFIT = re.compile(r"[^A-Za-z0-9_.-]+")
_MAX_TRACEBACK = 400


def code_cells(notebook: NotebookNode) -> Iterator[NotebookNode]:
    """Return the code cells in order."""
    return (cell for cell in notebook.cells if cell.cell_type == "code")


def is_collected(cell: NotebookNode) -> bool:
    """Return whether running the cell collects it for a program."""
    marked = parse_cell(cell.source, tags_of_metadata(cell.metadata))
    if marked is None or marked.write_mode:
        return False
    try:
        return parse_options(marked.line).verb is None
    except UsageError:
        return False  # the kernel reports the error


def settle_parameters(notebook: NotebookNode) -> None:
    """Add injected parameters to the program if the notebook's own parameters belong to it.

    Papermill adds a cell after the one tagged ``parameters``. If that cell is collected, a job
    would otherwise run with the values to be replaced. The added cell has a fixed id, by which a
    second attempt of a run recognises it.
    """
    injected = next(
        (c for c in code_cells(notebook) if INJECTED in tags_of_metadata(c.metadata)), None
    )
    own = next(
        (c for c in code_cells(notebook) if PARAMETERS in tags_of_metadata(c.metadata)), None
    )
    if injected is None:
        return
    if all(cell is injected or cell.get("id") != INJECTED for cell in notebook.cells):
        injected["id"] = INJECTED
    if own is None or not is_collected(own) or is_collected(injected):
        return
    ours = [
        t
        for t in tags_of_metadata(own.metadata)
        if t.partition(":")[0].strip() in (MAGIC, ONLY_TAG)
    ]
    marked = parse_cell(own.source)
    if marked is not None:
        injected.source = f"%%{MAGIC} {marked.line}".rstrip() + f"\n{injected.source}"
    else:
        injected.metadata.tags = [*tags_of_metadata(injected.metadata), *ours]


def steady_ids(notebook: NotebookNode, had_ids: bool) -> None:
    """Assign reproducible ids to the cells of a document without ids.

    Parameters
    ----------
    had_ids
        Whether the present ids were read from the document.
    """
    if had_ids:
        return
    seen: dict[str, int] = {}
    for cell in notebook.cells:
        digest = hashlib.sha256(f"{cell.cell_type}\n{cell.source}".encode()).hexdigest()[:12]
        seen[digest] = seen.get(digest, 0) + 1
        cell["id"] = f"{digest}-{seen[digest]}"


def select_cells(notebook: NotebookNode, names: Sequence[str]) -> None:
    """Keep only the cells that ``names`` select, parameters, and cells that load extensions.

    Parameters
    ----------
    names
        Ids, tags, titles in the metadata, or headings. A heading selects all code below it up to
        the next heading of its level.

    Raises
    ------
    UsageError
        If a name selects no code cell.
    """
    known = [_names_of(notebook.cells, index) for index in range(len(notebook.cells))]
    chosen: set[int] = set()
    for name in names:
        found = {
            index
            for index, cell in enumerate(notebook.cells)
            if cell.cell_type == "code" and _plain(name) in known[index]
        }
        if not found:
            usual = sorted(
                {tag for cell in code_cells(notebook) for tag in tags_of_metadata(cell.metadata)}
            )
            raise UsageError(
                f"The notebook has no code cell called {printable(name, 80)!r}.",
                "A name is a cell's id, a tag, a title, or a heading above it"
                + (f"; available tags: {', '.join(map(printable, usual[:10]))}." if usual else "."),
            )
        chosen |= found
    notebook.cells = [
        cell for index, cell in enumerate(notebook.cells) if index in chosen or _always(cell)
    ]


def _always(cell: NotebookNode) -> bool:
    parameters = {PARAMETERS, INJECTED}.intersection(tags_of_metadata(cell.metadata))
    return cell.cell_type == "code" and bool(parameters or _LOADS.search(cell.source))


def _names_of(cells: Sequence[NotebookNode], index: int) -> set[str]:
    cell = cells[index]
    names = {str(cell.get("id")), *tags_of_metadata(cell.metadata)}
    names |= {str(cell.metadata[key]) for key in ("title", "name") if cell.metadata.get(key)}
    level = 7
    for above in reversed(cells[:index]):
        headings = _HEADING.findall(above.source) if above.cell_type == "markdown" else []
        for marks, title in reversed(headings):
            if len(marks) < level:
                level = len(marks)
                names.add(title)
    return {_plain(name) for name in names}


def _plain(name: str) -> str:
    return " ".join(name.split()).casefold()


def add_run_cell(
    notebook: NotebookNode, stem: str, names: Sequence[str], return_names: Sequence[str]
) -> bool:
    """Add a cell that submits the collected cells, unless the notebook does so itself.

    Parameters
    ----------
    stem, names
        Name of the notebook and of the selected cells: the name of the job.
    return_names
        The values that the job returns, as far as the program assigns them.

    Returns
    -------
    bool
        Whether a cell was added: the notebook collects cells and has no run line.
    """
    cells = list(code_cells(notebook))
    collected = [cell for cell in cells if is_collected(cell)]
    if not collected or any(starts_job(cell.source) for cell in cells):
        return False
    name = _UNFIT.sub("-", "-".join(names) or stem).strip("-.")[:64] or "job"
    wanted = [name for name in return_names if name in _assigned(collected)]
    line = f"%{MAGIC} run {name}" + (f" --return {','.join(wanted)}" if wanted else "")
    source = f"submarine_job = {line}\nsubmarine_job"
    cell: NotebookNode = new_code_cell(source)
    cell["id"] = RUN_CELL
    cell.metadata.update(tags=[], papermill={})
    notebook.cells.append(cell)
    return True


def _assigned(cells: Iterable[NotebookNode]) -> set[str]:
    """Return the names that the cells assign, as far as they are Python."""
    names: set[str] = set()
    for cell in cells:
        marked = parse_cell(cell.source, tags_of_metadata(cell.metadata))
        try:
            tree = ast.parse(marked.body if marked else "")
        except SyntaxError:
            continue
        stores = (n for n in ast.walk(tree) if isinstance(n, ast.Name))
        names |= {node.id for node in stores if isinstance(node.ctx, ast.Store)}
    return names


def add_error(
    notebook: NotebookNode, cell: NotebookNode, ename: str, evalue: str, traceback: Sequence[str]
) -> None:
    """Add an error below ``cell`` and mark the cell as failed, as papermill does."""
    lines = [str(line) for line in traceback][-_MAX_TRACEBACK:] or [f"{ename}: {evalue}"]
    error = {"output_type": "error", "ename": ename, "evalue": evalue, "traceback": lines}
    cell.outputs.append(from_dict(error))
    mark_failed(notebook, cell)


def mark_failed(notebook: NotebookNode, cell: NotebookNode) -> None:
    """Mark ``cell`` as failed, as papermill does."""
    cell.metadata.papermill.update(exception=True, status="failed")
    notebook.metadata.papermill["exception"] = True


def last_executed(notebook: NotebookNode) -> NotebookNode | None:
    """Return the last executed code cell, else the first one, or None."""
    cells = list(code_cells(notebook))
    ran = [cell for cell in cells if cell.execution_count is not None]
    return ran[-1] if ran else next(iter(cells), None)
