"""Finds imports that the job's Python cannot resolve, by asking that interpreter.

Only the top-level name of each import is looked up, with ``importlib.util.find_spec``, which does
not import it. Says nothing about an interpreter that is not on this machine.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from submarine_jobs.bundle import Bundle
from submarine_jobs.checks.findings import Finding, Level, finding_at, place_of

_ASK = """
import importlib.util, json, sys
sys.path[:] = [p for p in sys.path if p]
def missing(name):
    try:
        return importlib.util.find_spec(name) is None
    except Exception:
        return False
print(json.dumps([n for n in json.load(sys.stdin) if missing(n)]))
"""
_CAUGHT = {"ImportError", "ModuleNotFoundError", "Exception", "BaseException"}
_PROJECTS = {
    "sklearn": "scikit-learn",
    "cv2": "opencv-python",
    "PIL": "Pillow",
    "yaml": "PyYAML",
    "skimage": "scikit-image",
}


@dataclass(frozen=True)
class _Import:
    module: str
    file: str
    line: int
    certain: bool


def missing_imports(
    bundle: Bundle, python: str, *, beside: Path | None = None, timeout: float = 10.0
) -> list[Finding]:
    """Imports of modules that are neither in ``bundle`` nor known to the interpreter ``python``.

    Parameters
    ----------
    python
        Path of the interpreter that will run the program.
    beside
        Directory of the notebook: a module that lies there is named with its own fix.
    timeout
        Seconds that the interpreter may take to answer.

    Returns
    -------
    list of Finding
        An error for each import that will certainly be executed, a warning for one inside a
        function; imports that the program guards itself are not reported. If the interpreter
        cannot be asked, a single warning says so.
    """
    imports = [
        found for file in sorted(bundle.python_files) for found in _imports_of(bundle.files, file)
    ]
    own = {name.split("/")[0].removesuffix(".py") for name in bundle.python_files}
    names = sorted({found.module for found in imports} - own - {"submarine_runtime"})
    if not names:
        return []
    try:
        missing = _ask(python, names, timeout)
    except _CannotAskError as error:
        return [
            Finding(
                Level.WARNING,
                "imports-unchecked",
                f"The imports were not checked: {python} {error}.",
                fix="They are found out when the job runs.",
            )
        ]
    first: dict[str, _Import] = {}
    for found in sorted(imports, key=lambda item: not item.certain):
        if found.module in missing:
            first.setdefault(found.module, found)
    return [_finding(bundle, found, python, beside) for found in first.values()]


def imported_modules(files: Mapping[str, bytes]) -> set[str]:
    """Top-level modules that a program's files import, wherever in them that is."""
    return {found.module for file in files for found in _imports_of(files, file)}


def lacks(python: str, module: str, timeout: float = 10.0) -> bool:
    """Whether the interpreter ``python`` certainly does not have a module."""
    try:
        return module in _ask(python, [module], timeout)
    except _CannotAskError:
        return False


class _CannotAskError(Exception):
    """The interpreter gave no usable answer; the message says why."""


def _ask(python: str, names: list[str], timeout: float) -> set[str]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    try:
        answer = subprocess.run(
            [python, "-B", "-c", _ASK],
            input=json.dumps(names),
            capture_output=True,
            text=True,
            timeout=timeout,
            cwd="/",
            env=environment,
            check=True,
        )
        found = json.loads(answer.stdout)
    except FileNotFoundError:
        raise _CannotAskError("is not on this machine") from None
    except subprocess.TimeoutExpired:
        raise _CannotAskError(f"did not answer within {timeout:g} s") from None
    except (OSError, subprocess.SubprocessError, ValueError):
        raise _CannotAskError("could not be asked") from None
    return {name for name in found if name in names} if isinstance(found, list) else set()


def _finding(bundle: Bundle, found: _Import, python: str, beside: Path | None) -> Finding:
    module = found.module
    where = place_of(bundle, found.file, found.line)
    message = f"{found.file} imports {module} ({where}), which {python} does not have."
    project = _PROJECTS.get(module, module)
    fix = f"Install {project} there, or choose another environment with --python-env."
    if beside is not None and (beside / f"{module}.py").is_file():
        message = f"{message[:-1]}; {module}.py lies beside the notebook and is not sent."
        fix = f"Put its code into a cell with %%submarine --file {module}.py."
    elif beside is not None and (beside / module / "__init__.py").is_file():
        message = f"{message[:-1]}; the package {module} lies beside the notebook and is not sent."
        fix = f"Put its code into cells with %%submarine --file {module}/NAME.py."
    level = Level.ERROR if found.certain else Level.WARNING
    return finding_at(bundle, level, "missing-import", message, found.file, found.line, fix)


def _imports_of(files: Mapping[str, bytes], file: str) -> list[_Import]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tree = ast.parse(files[file])
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return []
    found: list[_Import] = []
    pending: list[tuple[ast.AST, bool]] = [(node, True) for node in tree.body]
    while pending:
        node, certain = pending.pop()
        if isinstance(node, ast.Import):
            modules = [alias.name.split(".")[0] for alias in node.names]
            found += [_Import(module, file, node.lineno, certain) for module in modules]
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            found.append(_Import(node.module.split(".")[0], file, node.lineno, certain))
        else:
            pending.extend(_children(node, certain))
    return sorted(found, key=lambda item: item.line)


def _children(node: ast.AST, certain: bool) -> Iterable[tuple[ast.AST, bool]]:
    """Nodes to look at below ``node``, and whether they are certainly executed."""
    if isinstance(node, ast.Try) and _catches_import_error(node):
        return [(child, certain) for child in (*node.orelse, *node.finalbody)]
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        return [(child, certain) for child in node.orelse]
    if isinstance(node, ast.With) and any("suppress" in ast.unparse(i) for i in node.items):
        return []
    inside = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.If, ast.For, ast.While)
    if isinstance(node, inside):
        certain = False
    return [(child, certain) for child in ast.iter_child_nodes(node)]


def _catches_import_error(node: ast.Try) -> bool:
    for handler in node.handlers:
        if handler.type is None:
            return True
        kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
        if any(ast.unparse(kind).split(".")[-1] in _CAUGHT for kind in kinds):
            return True
    return False
