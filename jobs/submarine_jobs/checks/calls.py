"""Find calls that work in a notebook but not in a job: ``input()``, and files that are not sent.

All findings are warnings, because a call may not be reached. The checks parse the program and do
not run it.
"""

from __future__ import annotations

import ast
import os
import re
import shlex
import warnings
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from submarine_jobs.checks.findings import Finding, Level, finding_at, place_of
from submarine_jobs.program import Bundle
from submarine_runtime.translation import _

#: Functions and methods whose first argument is a file to read.
_READERS = re.compile(
    r"open|read_(?:csv|table|json|jsonl|parquet|excel|pickle|feather|hdf|fwf|orc|text|bytes)"
    r"|load|load_model|load_weights|loadtxt|genfromtxt|fromfile|imread|decode_csv|load_dataset"
    r"|TextLineDataset|TFRecordDataset|scan_csv|scan_parquet|ZipFile|File"
)
_PATH_ARGUMENTS = ("file", "filepath_or_buffer", "path", "filename", "fname", "io", "source")
_STRATEGIES = ("MultiWorkerMirroredStrategy", "ParameterServerStrategy")
_LEGACY_KERAS = ("TF_USE_LEGACY_KERAS", "tf_keras")


def check_calls(
    bundle: Bundle,
    broken: Collection[str | None],
    *,
    directory: Path | None,
    localized: Collection[str] = (),
    keras: Callable[[], int | None] = lambda: None,
) -> list[Finding]:
    """Return warnings about ``input()``, files that are not sent, and Keras 3 with two strategies.

    Parameters
    ----------
    broken
        Files that are not Python.
    directory
        Directory of the notebook or script, to which relative paths refer.
    localized
        Names of files that options put into the job's working directory.
    keras
        Returns the major version of the job's Keras; None: unknown.
    """
    findings: list[Finding] = []
    files = sorted(set(bundle.python_files) - set(broken))
    trees = {file: tree for file in files if (tree := _parse(bundle.files[file])) is not None}
    written = {path for tree in trees.values() for path in _written(tree)}
    for file, tree in trees.items():
        findings += _inputs(bundle, file, tree)
        if directory is not None:
            sent = {*bundle.files, *localized}
            findings += _unsent_files(bundle, file, tree, directory, sent, written)
    strategies = _keras(bundle, trees)
    if strategies and (keras() or 3) >= 3:
        findings += strategies
    return findings


def _inputs(bundle: Bundle, file: str, tree: ast.Module) -> list[Finding]:
    """Return the first call of ``input()``, unless the file binds that name."""
    calls = [call for call in _calls(tree) if _is_name(call.func, "input")]
    if not calls or "input" in _bound(tree):
        return []
    where = place_of(bundle, file, calls[0].lineno)
    return [
        finding_at(
            bundle,
            Level.WARNING,
            "asks-for-input",
            _("{file} calls input() ({where}), which fails in a job: it has no keyboard.").format(
                file=file, where=where
            ),
            file,
            calls[0].lineno,
            _("Give the value as a parameter (--param NAME=VALUE) or as an argument after --."),
        )
    ]


def _unsent_files(
    bundle: Bundle,
    file: str,
    tree: ast.Module,
    directory: Path,
    sent: set[str],
    written: set[str],
) -> list[Finding]:
    """Return files that the program reads by a relative path and that are not sent."""
    first: dict[str, int] = {}
    for call in _calls(tree):
        path = _read_path(call)
        if path is not None and path not in written:
            first[path] = min(call.lineno, first.get(path, call.lineno))
    findings = []
    for path, line in sorted(first.items(), key=lambda item: item[1]):
        plain = os.path.normpath(path)
        is_sent = any(plain == name or plain.startswith(f"{name}/") for name in sent)
        if is_sent or not _is_file(directory / plain):
            continue
        source = os.path.relpath(directory / plain)
        target = plain if not plain.startswith("..") else Path(plain).name
        option = source if target == Path(source).name else f"{source}:{target}"
        fix = _("Send it with --file {option}.").format(option=shlex.quote(option))
        if plain.startswith(".."):
            fix = _("Send it with --file {option}, and read it as {target}.").format(
                option=shlex.quote(option), target=target
            )
        message = _("{file} reads {path} ({place}), which is not sent.").format(
            file=file, path=path, place=place_of(bundle, file, line)
        )
        findings.append(
            finding_at(bundle, Level.WARNING, "file-not-sent", message, file, line, fix)
        )
    return findings


def _keras(bundle: Bundle, trees: dict[str, ast.Module]) -> list[Finding]:
    """Return the use of a strategy with which ``fit`` of Keras 3 fails, if the program calls it."""
    if any(word in bundle.text(file) for file in trees for word in _LEGACY_KERAS):
        return []
    uses = [
        (file, node.lineno, name)
        for file, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, (ast.Name, ast.Attribute)) and (name := _name(node)) in _STRATEGIES
    ]
    fits = [
        place_of(bundle, file, call.lineno)
        for file, tree in trees.items()
        for call in _calls(tree)
        if isinstance(call.func, ast.Attribute) and call.func.attr == "fit"
    ]
    if not uses or not fits:
        return []
    file, line, name = uses[0]
    return [
        finding_at(
            bundle,
            Level.WARNING,
            "keras-strategy",
            _(
                "{file} uses {name} ({place}) and calls fit ({fits}); fit of Keras 3 fails "
                "under this strategy."
            ).format(file=file, name=name, place=place_of(bundle, file, line), fits=fits[0]),
            file,
            line,
            _(
                "Install tf_keras and run with --env TF_USE_LEGACY_KERAS=1, or write the "
                "training loop yourself."
            ),
        )
    ]


def _written(tree: ast.Module) -> Iterator[str]:
    """Yield relative paths that the program writes."""
    for call in _calls(tree):
        path, name = _path_of(call), _name(call.func)
        writes = name in ("write_text", "write_bytes") or (name == "open" and _writes(call))
        if path is not None and writes:
            yield path


def _read_path(call: ast.Call) -> str | None:
    """Return the relative path that a call reads, if it is a literal."""
    name = _name(call.func)
    if not _READERS.fullmatch(name) or _writes(call):
        return None
    return _path_of(call)


def _path_of(call: ast.Call) -> str | None:
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    if isinstance(owner, ast.Call) and _name(owner.func) == "Path":
        return _path_of(owner)  # Path("data.csv").read_text()
    values = [*call.args[:1], *(k.value for k in call.keywords if k.arg in _PATH_ARGUMENTS)]
    for value in values:
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            path = value.value
            if path and len(path) < 1000 and path[0] not in "/~" and "://" not in path:
                return path
    return None


def _writes(call: ast.Call) -> bool:
    modes = [*call.args[1:2], *(k.value for k in call.keywords if k.arg == "mode")]
    texts = [m.value for m in modes if isinstance(m, ast.Constant) and isinstance(m.value, str)]
    return any(set("wax") & set(text) for text in texts)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def _calls(tree: ast.Module) -> list[ast.Call]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call)]


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _name(node: ast.expr) -> str:
    """Return ``f`` for ``f`` and for ``module.f``."""
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else ""


def _bound(tree: ast.Module) -> set[str]:
    """Return the names that the file binds in any scope."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.alias):
            found.add(node.asname or node.name)
    return found


def _parse(content: bytes) -> ast.Module | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(content)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
