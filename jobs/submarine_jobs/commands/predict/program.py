"""The program of ``predict``: the functions of the user, and a call that applies them.

The functions are those of the cell, of collected cells with the file ``predict.py``, of a file, or
of all collected cells.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from submarine_jobs.commands.run import Program, find_program
from submarine_jobs.errors import UsageError
from submarine_jobs.program import PROGRAM, Bundle, Cell, build_bundle, parse_python
from submarine_runtime.translation import _

if TYPE_CHECKING:
    from submarine_jobs.commands.grammar import CellBody
    from submarine_jobs.frontends import Frontend
    from submarine_jobs.options import RunOptions

#: File of the functions, if they come from a cell.
FILE = "predict.py"
#: What ``--return`` takes from the program.
RESULT = "predictions"
#: What the Python of the job needs for the results.
_PACKAGES = ("numpy", "pyarrow")
_CALL = """

# Added by submarine predict.
import submarine_data.prediction

{result} = submarine_data.prediction.run(
    globals(),
{settings})
"""


def functions_of(options: RunOptions, frontend: Frontend, body: CellBody | None) -> Program:
    """Return the program with the functions, without the call.

    Parameters
    ----------
    body
        The text below ``%%submarine predict``.

    Raises
    ------
    UsageError
        If there is no program.
    """
    collected = frontend.collection
    cells = [] if collected is None else collected.cells()
    has_body = body is not None and bool(body.text.strip())
    if has_body and options.program is not None:
        raise UsageError(
            _("--program names a file, and the cell has functions too."),
            _("Leave one of them out."),
        )
    own = any(cell.filename == FILE for cell in cells)
    if not has_body and (options.program not in (None, FILE) or not own):
        return find_program(options, frontend)
    # The cells of main.py train a model; they are not part of this program.
    chosen = [cell for cell in cells if cell.filename != PROGRAM]
    if body is not None and has_body:
        chosen.append(
            Cell(
                frontend.launching_cell,
                body.text,
                FILE,
                label=body.label or "[ ]",
                first_line=body.first_line,
            )
        )
    document = collected.document if collected is not None else None
    bundle = build_bundle(
        chosen, program=FILE, notebook=document.snapshot if document is not None else None
    )
    return Program("predict", bundle, frontend.notebook_name)


def with_call(program: Program, settings: Mapping[str, Any]) -> Program:
    """Return the program with the call of ``submarine_data.prediction.run`` at its end."""
    bundle = program.bundle
    assert bundle is not None
    lines = "".join(f"    {name}={value!r},\n" for name, value in settings.items())
    text = bundle.files[bundle.program].rstrip(b"\n") + b"\n"
    text += _CALL.format(result=RESULT, settings=lines).encode()
    files = {**bundle.files, bundle.program: text}
    return replace(program, bundle=replace(bundle, files=files), packages=_PACKAGES)


def check_functions(program: Program, *, model: bool) -> list[str]:
    """Check that the program defines the functions; return warnings.

    Parameters
    ----------
    model
        Whether there is a model.

    Raises
    ------
    UsageError
        If ``predict`` is missing, or ``load_model`` is missing or has no model.
    """
    bundle = program.bundle
    if bundle is None:
        raise UsageError(
            _("predict applies a function of a Python program, and there is none."),
            _("Write %%submarine predict above a cell with def predict(batch), or --program FILE."),
        )
    tree = parse_python(bundle.files[bundle.program])
    if tree is None:
        return []  # The check of the program reports the syntax error.
    names, functions = set(_bound(tree)), _functions(tree)
    if "*" in names:
        return []
    if "predict" not in names:
        raise UsageError(
            _("{file} defines no function predict(batch).").format(file=bundle.program),
            _("Define it: it gets a batch of rows and returns the results by column."),
        )
    loads = "load_model" in names
    if _required(functions.get("predict")) > 1 and not loads:
        raise UsageError(
            _("predict(batch, model) of {file} needs a function load_model(path).").format(
                file=bundle.program
            ),
            _("Define it: it returns the model, once in each worker."),
        )
    if _required(functions.get("load_model")) and not model:
        raise UsageError(
            _("load_model(path) of {file} needs a model, and none is named.").format(
                file=bundle.program
            ),
            _("Name one: submarine predict JOB@VERSION."),
        )
    if model and not loads and not _names_input(bundle):
        return [_("The program does not use the model: define load_model(path).")]
    return []


def _names_input(bundle: Bundle) -> bool:
    return any(b"SUBMARINE_INPUT_" in content for content in bundle.files.values())


def _bound(tree: ast.Module) -> Iterator[str]:
    """Yield the names that a program binds anywhere; ``*`` for an import of all names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from (alias.asname or alias.name.split(".")[0] for alias in node.names)


def _functions(tree: ast.Module) -> dict[str, ast.FunctionDef]:
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}


def _required(function: ast.FunctionDef | None) -> int:
    """Return how many values a function needs by position."""
    if function is None:
        return 0
    arguments = function.args
    return len(arguments.posonlyargs) + len(arguments.args) - len(arguments.defaults)
