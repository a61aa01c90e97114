"""Find imports that the interpreter of the job cannot resolve.

A subprocess of that interpreter searches modules and submodules without importing them, so no code
of a package runs. A submodule that a package may create at run time is not an error. An interpreter
that is not on this machine is not checked.
"""

from __future__ import annotations

import ast
import builtins
import functools
import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from submarine_jobs.checks.definitions import bound_names
from submarine_jobs.checks.findings import Finding, Level, finding_at, place_of
from submarine_jobs.checks.interpreter import InterpreterError, run_script
from submarine_jobs.program import Bundle, parse_python
from submarine_runtime.translation import _

#: Reads [[module, member], ...] and prints the level of each that is missing: "error" or "warning".
_IMPORTS_SCRIPT = r"""
import importlib.util, json, re, sys
sys.path[:] = [p for p in sys.path if p]

def find(name, path):
    for finder in sys.meta_path:
        look = getattr(finder, "find_spec", None)
        spec = look(name, path) if look else None
        if spec is not None:
            return spec

def text_of(spec):
    if spec.origin is None:
        return ""
    if not spec.origin.endswith(".py"):
        return None
    with open(spec.origin, encoding="utf-8", errors="replace") as file:
        return file.read()

def check(module, member):
    parts = module.split(".")
    spec = importlib.util.find_spec(parts[0])
    if spec is None:
        return "error"
    for depth in range(1, len(parts)):
        level = check_member(spec, parts[depth], r"sys\.modules|__path__|meta_path|extend_path")
        if level != "found":
            return level
        spec = find(".".join(parts[: depth + 1]), spec.submodule_search_locations)
    if member and spec.submodule_search_locations is not None:
        dynamic = r"import \*|__getattr__|globals\(|exec\(|setattr|sys\.modules|__path__"
        level = check_member(spec, member, dynamic)
        return "error" if level == "error" else ""
    return ""

def check_member(spec, name, dynamic):
    path = spec.submodule_search_locations
    if path is not None and find(spec.name + "." + name, path) is not None:
        return "found"
    text = text_of(spec)
    if text is None or re.search(r"\b%s\b" % re.escape(name), text):
        return ""
    return "warning" if re.search(dynamic, text) else "error"

def level(module, member):
    try:
        return check(module, member)
    except Exception:
        return ""

print(json.dumps([level(*item) for item in json.load(sys.stdin)]))
"""
_BUILTINS_SCRIPT = "import builtins, json; print(json.dumps(dir(builtins)))"
_VERSION_SCRIPT = """
try:
    from importlib.metadata import version
    print(json.dumps([version(PROJECT)]))
except Exception:
    print(json.dumps([""]))
"""
#: Packages that the job brings along.
_DATA_NAME = "submarine_data"
_SHIPPED = frozenset({_DATA_NAME, "submarine_runtime"})
#: Builtins that ``site`` adds, and those that IPython adds.
_SITE_BUILTINS = {"exit", "quit", "copyright", "credits", "license", "help"}
_IPYTHON_BUILTINS = {"display", "get_ipython", "__IPYTHON__"}
_CAUGHT = {"ImportError", "ModuleNotFoundError", "Exception", "BaseException"}
#: Libraries that start one process for each device themselves, and the endings of the names in
#: transformers that do.
_LAUNCHERS = {
    *("accelerate", "fastai", "lightning", "lightning_fabric", "pytorch_lightning"),
    *("sentence_transformers", "trl", "ultralytics"),
}
_TRAINERS = ("Trainer", "TrainingArguments")
#: Functions that read ``RANK`` and ``WORLD_SIZE`` from the environment.
_INITIALISES = {"init_process_group", "init_distributed", "init_device_mesh"}
_PROJECTS = {
    "sklearn": "scikit-learn",
    "cv2": "opencv-python",
    "PIL": "Pillow",
    "yaml": "PyYAML",
    "skimage": "scikit-image",
}


@dataclass(frozen=True)
class _Import:
    """``path`` is the dotted module, ``member`` the name in ``from path import member``."""

    path: str
    file: str
    line: int
    certain: bool
    member: str = ""

    @property
    def module(self) -> str:
        """The top-level module."""
        return self.path.split(".")[0]

    @property
    def full(self) -> str:
        """The longest dotted name that may be a module."""
        return f"{self.path}.{self.member}" if self.member else self.path


def missing_imports(
    bundle: Bundle,
    python: str,
    *,
    beside: Path | None = None,
    given: Collection[str] = (),
    timeout: float = 10.0,
) -> list[Finding]:
    """Return imports of modules that neither ``bundle`` nor the interpreter ``python`` has.

    Parameters
    ----------
    python
        Path of the interpreter that will run the program.
    beside
        Directory of the notebook: a module in it gets its own fix.
    given
        Top-level modules that the job gets in another way, such as ``--file``.
    timeout
        Time limit of the subprocess in seconds.

    Returns
    -------
    list of Finding
        An error for each import that will certainly be executed, a warning for one inside a
        function or in a file that the program does not import; guarded imports are not reported.
        A single warning if the subprocess fails.
    """
    imports = [
        found for file in sorted(bundle.python_files) for found in _imports_of(bundle.files, file)
    ]
    reached = _reached_files(bundle, imports)
    imports = [
        found if found.file in reached else replace(found, certain=False) for found in imports
    ]
    own = {name.split("/")[0].removesuffix(".py") for name in bundle.python_files}
    findings = [
        _own_finding(bundle, found)
        for found in _first_of_each(imports)
        if found.module in own - set(given) and _lacks_own(bundle, found)
    ]
    elsewhere = {found for found in imports if found.module not in own}
    queried = sorted({(f.path, f.member) for f in elsewhere if f.module not in given})
    queried = [item for item in queried if item[0].split(".")[0] not in _SHIPPED]
    if not queried:
        return findings
    try:
        levels = dict(zip(queried, _missing_levels(python, queried, timeout), strict=True))
    except InterpreterError as error:
        return [
            *findings,
            Finding(
                Level.WARNING,
                "imports-unchecked",
                _("The imports were not checked: {python} {error}.").format(
                    python=python, error=error
                ),
                fix=_("They are resolved when the job runs."),
            ),
        ]
    missing = [found for found in imports if levels.get((found.path, found.member))]
    top = _missing_top_level(python, missing, timeout)
    shown: dict[str, Finding] = {}
    for found in sorted(missing, key=lambda item: not item.certain):
        if found.module in top:
            shown.setdefault(found.module, _finding(bundle, found, python, beside))
        else:
            certain = found.certain and levels[found.path, found.member] == "error"
            shown.setdefault(found.full, _submodule_finding(bundle, found, python, certain=certain))
    return [*findings, *shown.values()]


def _reached_files(bundle: Bundle, imports: Iterable[_Import]) -> set[str]:
    """Return the program's file and those that it imports, also through others.

    A notebook may have collected files for several jobs, of which each runs one.
    """
    if bundle.program not in bundle.python_files:
        return set(bundle.python_files)
    of_files: dict[str, list[_Import]] = {}
    for found in imports:
        of_files.setdefault(found.file, []).append(found)
    reached: set[str] = set()
    pending = [bundle.program]
    while pending:
        file = pending.pop()
        if file in reached or file not in bundle.files:
            continue
        reached.add(file)
        for found in of_files.get(file, ()):
            parts = found.full.split(".")
            stems = ["/".join(parts[:depth]) for depth in range(1, len(parts) + 1)]
            pending += [f"{stem}{end}" for stem in stems for end in (".py", "/__init__.py")]
    return reached


def _missing_top_level(python: str, missing: Iterable[_Import], timeout: float) -> set[str]:
    """Return the top-level modules of missing imports that are missing as a whole."""
    names = sorted({found.module for found in missing})
    if not names:
        return set()
    try:
        levels = _missing_levels(python, [(name, "") for name in names], timeout)
    except InterpreterError:
        return set()
    return {name for name, level in zip(names, levels, strict=True) if level}


def _first_of_each(imports: Iterable[_Import]) -> list[_Import]:
    """Return one import of each name, preferably one that is certainly executed."""
    first: dict[str, _Import] = {}
    for found in sorted(imports, key=lambda item: not item.certain):
        first.setdefault(found.full, found)
    return list(first.values())


def _lacks_own(bundle: Bundle, found: _Import) -> bool:
    """Return whether a module of the program's own packages is missing."""
    parts = found.path.split(".")
    for depth in range(2, len(parts) + 1):
        if not _has_module(bundle, "/".join(parts[:depth])):
            return True
    package = f"{'/'.join(parts)}/__init__.py"
    if not found.member or package not in bundle.files:
        return False
    text = bundle.text(package)
    if "import *" in text or "__getattr__" in text or found.member in bound_names(text):
        return False
    return not _has_module(bundle, "/".join([*parts, found.member]))


def _has_module(bundle: Bundle, stem: str) -> bool:
    return f"{stem}.py" in bundle.files or any(n.startswith(f"{stem}/") for n in bundle.files)


def _own_finding(bundle: Bundle, found: _Import) -> Finding:
    where = place_of(bundle, found.file, found.line)
    missing = f"{found.full.replace('.', '/')}.py"
    if bundle.source_map.files:
        fix = _("Collect it in a cell with %%submarine --file {missing}.").format(missing=missing)
    else:
        fix = _("Put {missing} beside the program, or correct the import.").format(missing=missing)
    message = _("{file} imports {full} ({where}), and the program has no {missing}.").format(
        file=found.file, full=found.full, where=where, missing=missing
    )
    level = Level.ERROR if found.certain else Level.WARNING
    return finding_at(bundle, level, "missing-submodule", message, found.file, found.line, fix)


def _submodule_finding(bundle: Bundle, found: _Import, python: str, *, certain: bool) -> Finding:
    where = place_of(bundle, found.file, found.line)
    message = _(
        "{file} imports {full} ({where}), which {python} does not have: its {module} has no such "
        "part."
    ).format(file=found.file, full=found.full, where=where, python=python, module=found.module)
    fix = _("Correct the import, or install a version of {module} that has it.").format(
        module=found.module
    )
    level = Level.ERROR if certain else Level.WARNING
    return finding_at(bundle, level, "missing-submodule", message, found.file, found.line, fix)


def imported_modules(files: Mapping[str, bytes]) -> set[str]:
    """Return the top-level modules that a program's files import, in any scope."""
    return {found.module for file in files for found in _imports_of(files, file)}


def uses_data(files: Mapping[str, bytes], commands: Iterable[str] = ()) -> bool:
    """Return whether a program imports ``submarine_data``, or one of its commands names it."""
    if any(_DATA_NAME in command for command in commands):
        return True
    named = {
        name: content
        for name, content in files.items()
        if name.endswith(".py") and _DATA_NAME.encode() in content
    }
    return _DATA_NAME in imported_modules(named)


def has_own_launcher(files: Mapping[str, bytes]) -> bool:
    """Return whether a library that a PyTorch program imports starts the training's processes.

    Lightning, Accelerate and the trainers of transformers and trl read ``LOCAL_RANK`` as a sign
    that a launcher has already started one process for each device. A program that calls
    ``init_process_group`` itself needs the variables of such a launcher.
    """
    launcher = False
    for file in files:
        tree = parse_python(files[file])
        for node in ast.walk(tree) if tree is not None else ():
            if _INITIALISES.intersection(_names_of(node)):
                return False
            launcher = launcher or _imports_launcher(node)
    return launcher


def _names_of(node: ast.AST) -> list[str]:
    if isinstance(node, ast.ImportFrom):
        return [alias.name for alias in node.names]
    if isinstance(node, (ast.Name, ast.Attribute)):
        return [node.id if isinstance(node, ast.Name) else node.attr]
    return []


def _imports_launcher(node: ast.AST) -> bool:
    if isinstance(node, ast.Import):
        return any(alias.name.split(".")[0] in _LAUNCHERS for alias in node.names)
    if isinstance(node, ast.ImportFrom):
        top = "" if node.level else (node.module or "").split(".")[0]
        trainer = any(alias.name.endswith(_TRAINERS) for alias in node.names)
        return top in _LAUNCHERS or (top == "transformers" and trainer)
    return (
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "transformers"
        and node.attr.endswith(_TRAINERS)
    )


def lacks_module(python: str, module: str, timeout: float = 10.0) -> bool:
    """Return whether the interpreter ``python`` certainly lacks a module."""
    try:
        return _missing_levels(python, [(module, "")], timeout) == ["error"]
    except InterpreterError:
        return False


@functools.lru_cache(maxsize=32)
def python_builtins(python: str) -> frozenset[str]:
    """Return the builtins of the interpreter ``python``, without those of a notebook."""
    try:
        names = run_script(python, ["-I", "-B", "-c", _BUILTINS_SCRIPT], "", 10.0)
    except InterpreterError:
        names = [*(set(dir(builtins)) - _IPYTHON_BUILTINS), *_SITE_BUILTINS]
    return frozenset(str(name) for name in names)


def project_version(python: str, project: str) -> str:
    """Return the version of a project in the interpreter ``python``, ``3.15.1``; empty: unknown."""
    program = f"import json\n{_VERSION_SCRIPT}".replace("PROJECT", repr(project))
    try:
        (version,) = run_script(python, ["-B", "-c", program], "", 10.0)
    except (InterpreterError, ValueError):
        return ""
    return str(version) if re.match(r"\d+\.", str(version)) else ""


def _missing_levels(python: str, imports: Sequence[tuple[str, str]], timeout: float) -> list[str]:
    """Return for each (module, member) the level at which it is missing; empty: present."""
    levels = run_script(python, ["-B", "-c", _IMPORTS_SCRIPT], json.dumps(imports), timeout)
    if len(levels) != len(imports):
        raise InterpreterError(_("could not be queried"))
    return [level if level in ("error", "warning") else "" for level in levels]


def _finding(bundle: Bundle, found: _Import, python: str, beside: Path | None) -> Finding:
    module = found.module
    where = place_of(bundle, found.file, found.line)
    message = _("{file} imports {module} ({where}), which {python} does not have.").format(
        file=found.file, module=module, where=where, python=python
    )
    project = _PROJECTS.get(module, module)
    fix = _("Install {project} there, or choose another environment with --python-env.").format(
        project=project
    )
    if beside is not None and (beside / f"{module}.py").is_file():
        message = _("{message}; {module}.py is beside the notebook and is not sent.").format(
            message=message[:-1], module=module
        )
        fix = _("Put its code into a cell with %%submarine --file {module}.py.").format(
            module=module
        )
    elif beside is not None and (beside / module / "__init__.py").is_file():
        message = _(
            "{message}; the package {module} is beside the notebook and is not sent."
        ).format(message=message[:-1], module=module)
        fix = _("Put its code into cells with %%submarine --file {module}/NAME.py.").format(
            module=module
        )
    level = Level.ERROR if found.certain else Level.WARNING
    return finding_at(bundle, level, "missing-import", message, found.file, found.line, fix)


def _imports_of(files: Mapping[str, bytes], file: str) -> list[_Import]:
    tree = parse_python(files[file])
    if tree is None:
        return []
    found: list[_Import] = []
    pending: list[tuple[ast.AST, bool]] = [(node, True) for node in tree.body]
    while pending:
        node, certain = pending.pop()
        if isinstance(node, ast.Import):
            found += [_Import(alias.name, file, node.lineno, certain) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            if base := _base_of(node, file):
                members = ("" if alias.name == "*" else alias.name for alias in node.names)
                found += [_Import(base, file, node.lineno, certain, item) for item in members]
        else:
            pending.extend(_children(node, certain))
    return sorted(found, key=lambda item: item.line)


def _base_of(node: ast.ImportFrom, file: str) -> str:
    """Return the module of ``from ... import``, relative to the program's directory."""
    package = file.split("/")[:-1]
    if node.level > len(package):
        return ""  # unknown, or the program's directory, which is not a package
    parts = package[: len(package) - node.level + 1] if node.level else []
    return ".".join([*parts, *([node.module] if node.module else [])])


def _children(node: ast.AST, certain: bool) -> Iterable[tuple[ast.AST, bool]]:
    """Return the child nodes to search, and whether they are certainly executed."""
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
