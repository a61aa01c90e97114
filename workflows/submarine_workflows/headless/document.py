"""Notebook documents before and after a run: read, parametrize, select cells, add errors.

Except for reading notebooks and parameter files, the functions only change the given document.
"""

from __future__ import annotations

import ast
import difflib
import hashlib
import json
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import nbformat
import yaml
from nbformat import NotebookNode, from_dict
from nbformat.v4 import new_code_cell

from submarine_jobs.errors import UsageError
from submarine_jobs.program import (
    MAGIC,
    ONLY_TAG,
    NotebookError,
    parse_cell,
    parse_options,
    starts_job,
    tags_of_metadata,
)
from submarine_jobs.text import printable
from submarine_runtime.translation import _
from submarine_workflows.locations import Location, find_location

PARAMETERS, INJECTED = "parameters", "injected-parameters"
#: Id of the cell that this run adds to submit the collected cells.
RUN_CELL = "submarine-run"
_LOAD_EXTENSION = re.compile(r"^[ \t]*%(?:re)?load_ext[ \t]", re.M)
_HEADING = re.compile(r"^(#{1,6})[ \t]+(.+?)[ \t#]*$", re.M)
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.-]+")
_MAX_TRACEBACK = 400
_CONSTANTS = {"True": True, "False": False, "None": None}


def read_document(location: Location) -> tuple[NotebookNode, bool]:
    """Return the document, and whether its cells had ids.

    Raises
    ------
    UsageError
        If it does not exist or is not a notebook.
    StorageError
        If the storage does not answer.
    """
    data = location.read()
    shown = printable(location.url, 200)
    try:
        raw = json.loads(data)
        version = (int(raw["nbformat"]), int(raw.get("nbformat_minor", 0)))
    except (ValueError, TypeError, KeyError, RecursionError):
        raise NotebookError(
            _("{shown} is not a notebook.").format(shown=shown), _("Save it from Jupyter again.")
        ) from None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            document: NotebookNode = nbformat.reads(data.decode("utf-8"), as_version=4)
            document = nbformat.v4.upgrade(document) or document
            # Documents of format 3 have another class, which papermill takes for a path.
            document = nbformat.from_dict(document)
        if not all(isinstance(cell.source, str) for cell in document.cells):
            raise TypeError
        _remove_invalid_metadata(document)
    except Exception:  # any error of nbformat means an invalid document
        raise NotebookError(
            _("{shown} is not a notebook that nbformat can read.").format(shown=shown),
            _("Save it from Jupyter again."),
        ) from None
    return document, version >= (4, 5) and all(cell.get("id") for cell in raw["cells"])


def _remove_invalid_metadata(document: NotebookNode) -> None:
    """Remove metadata of unexpected types; only the cells are required."""
    kernelspec = document.metadata.get("kernelspec")
    if not isinstance(kernelspec, dict) or not isinstance(kernelspec.get("name", ""), str):
        document.metadata.pop("kernelspec", None)
    for key in ("language_info", "papermill"):
        if not isinstance(document.metadata.get(key), dict):
            document.metadata.pop(key, None)
    for cell in document.cells:
        for key, kind in (("papermill", dict), ("tags", list)):
            if not isinstance(cell.metadata.get(key), kind):
                cell.metadata.pop(key, None)


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


def mark_injected_parameters(notebook: NotebookNode) -> None:
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


def assign_stable_ids(notebook: NotebookNode, had_ids: bool) -> None:
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
            if cell.cell_type == "code" and _normalized(name) in known[index]
        }
        if not found:
            usual = sorted(
                {tag for cell in code_cells(notebook) for tag in tags_of_metadata(cell.metadata)}
            )
            raise UsageError(
                _("The notebook has no code cell called {name!r}.").format(
                    name=printable(name, 80)
                ),
                _("A name is a cell's id, a tag, a title, or a heading above it")
                + (
                    _("; available tags: {map}.").format(map=", ".join(map(printable, usual[:10])))
                    if usual
                    else "."
                ),
            )
        chosen |= found
    notebook.cells = [
        cell
        for index, cell in enumerate(notebook.cells)
        if index in chosen or _is_always_included(cell)
    ]


def _is_always_included(cell: NotebookNode) -> bool:
    parameters = {PARAMETERS, INJECTED}.intersection(tags_of_metadata(cell.metadata))
    return cell.cell_type == "code" and bool(parameters or _LOAD_EXTENSION.search(cell.source))


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
    return {_normalized(name) for name in names}


def _normalized(name: str) -> str:
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
    name = _NOT_IN_NAMES.sub("-", "-".join(names) or stem).strip("-.")[:64] or "job"
    wanted = [name for name in return_names if name in _assigned_names(collected)]
    line = f"%{MAGIC} run {name}" + (f" --return {','.join(wanted)}" if wanted else "")
    source = f"submarine_job = {line}\nsubmarine_job"
    cell: NotebookNode = new_code_cell(source)
    cell["id"] = RUN_CELL
    cell.metadata.update(tags=[], papermill={})
    notebook.cells.append(cell)
    return True


def _assigned_names(cells: Iterable[NotebookNode]) -> set[str]:
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
    """Add an error below ``cell`` and mark the cell as failed, as papermill does.

    Parameters
    ----------
    ename, evalue
        Type and message of the exception.
    traceback
        Lines of the traceback; only the last 400 are stored. If it is empty, one line with type and
        message is stored.
    """
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


def read_parameters(files: Iterable[str], typed: Iterable[tuple[str, str, bool]]) -> dict[str, Any]:
    """Return parameters by name. Typed values override files, later files override earlier ones.

    Parameters
    ----------
    typed
        Name, value, and whether the value is always text.

    Raises
    ------
    UsageError
        If a file contains no mapping, or a name is not a valid variable name.
    """
    found: dict[str, Any] = {}
    for file in files:
        found.update(_parameters_in_file(file))
    for name, text, raw in typed:
        found[name] = text if raw else parse_value(text)
    for name in found:
        if not name.isidentifier():
            raise UsageError(
                _("{name!r} is not a valid parameter name.").format(name=printable(name, 60)),
                _("It becomes a variable of the notebook: letters, digits and _."),
            )
    return found


def parse_value(text: str) -> Any:
    """Convert text to a number, True, False or None if possible, as papermill does."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _parameters_in_file(file: str) -> Mapping[str, Any]:
    # cost: papermill (0.5 s); the notebook and its parameters are checked without it.
    from papermill.iorw import NoDatesSafeLoader

    try:
        found = yaml.load(find_location(file).read(), Loader=NoDatesSafeLoader)  # noqa: S506
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        line = _(", line {line}").format(line=mark.line + 1) if mark is not None else ""
        raise UsageError(
            _("{file}{line} is not valid YAML.").format(file=printable(file, 200), line=line)
        ) from None
    found = {} if found is None else found
    if not isinstance(found, dict) or not all(isinstance(name, str) for name in found):
        raise UsageError(
            _("{file} contains no parameters.").format(file=printable(file, 200)),
            _("Write NAME: VALUE on each line."),
        )
    return found


def inject(
    notebook: NotebookNode,
    parameters: dict[str, Any],
    kernel: str,
    language: str,
    warn: Callable[[str], None],
) -> NotebookNode:
    """Return the document with a cell that sets ``parameters``, after the one with that tag.

    Parameters
    ----------
    parameters
        Value by name; if empty, the document is returned unchanged.
    kernel, language
        Name of the kernel and language of the notebook; they determine the syntax.
    warn
        Called with a sentence for each parameter that the notebook does not declare.

    Raises
    ------
    UsageError
        If papermill cannot write parameters for the kernel.
    """
    # cost: papermill (0.5 s); the notebook and its parameters are checked without it.
    from papermill.exceptions import PapermillException
    from papermill.inspection import _infer_parameters
    from papermill.parameterize import parameterize_notebook

    if not parameters:
        return notebook
    known = [item.name for item in _infer_parameters(notebook, name=kernel, language=language)]
    for name in parameters:
        if known and name not in known:
            close = difflib.get_close_matches(name, known, 1)
            hint = (
                _("did you mean {close}?").format(close=printable(close[0], 60))
                if close
                else _("it is set anyway.")
            )
            warn(
                _("warning: The notebook has no parameter {name}; {hint}").format(
                    name=name, hint=hint
                )
            )
    try:
        changed: NotebookNode = parameterize_notebook(
            notebook, parameters, kernel_name=kernel, language=language, engine_name="submarine"
        )
    except PapermillException as error:
        raise UsageError(
            _("Parameters cannot be written for the kernel {kernel}: {error}.").format(
                kernel=printable(kernel, 60), error=printable(str(error), 200)
            ),
            _("Leave out -p and -f, or set them in the notebook."),
        ) from None
    return changed
