"""Where a program's library writes checkpoints, and by which rule several tasks restore them.

Only the source is read. The rule of a restart follows from the files that the tasks have written
(``submarine_runtime.restore_points``); here it is what the imports let one expect.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from submarine_jobs.program import parse_python
from submarine_runtime.translation import _

#: Library -> its default directories below the working directory.
_DEFAULTS = {
    "lightning": ("lightning_logs", "checkpoints"),
    "pytorch_lightning": ("lightning_logs", "checkpoints"),
    "transformers": ("trainer_output", "tmp_trainer"),
    "trl": ("trainer_output", "tmp_trainer"),
    "accelerate": (),
    "deepspeed": (),
    "torch.distributed.checkpoint": (),
}
#: Libraries whose tasks write parts of one checkpoint.
_PARTS = ("torch.distributed.checkpoint", "deepspeed", "transformers", "trl", "accelerate")
#: Arguments of these libraries that name such a directory, and functions with it as the first one.
_ARGUMENTS = frozenset(
    {
        *("output_dir", "default_root_dir", "dirpath", "project_dir", "checkpoint_id"),
        "save_dir",
    }
)
_FUNCTIONS = frozenset(
    {
        *("TrainingArguments", "Seq2SeqTrainingArguments", "ModelCheckpoint"),
        *("save_state", "save_checkpoint"),
    }
)
#: Functions that fail if the directory exists.
_MAKES = frozenset({"mkdir", "makedirs", "rmtree", "symlink", "rename"})


def checkpoint_links(files: Mapping[str, bytes]) -> tuple[str, ...]:
    """Return the directories of the working directory that are links into the checkpoint directory.

    These are the default directories of the libraries that the program imports, and those that it
    names in a call of such a library, as a text. A name that the program creates or deletes itself
    is left out.

    Parameters
    ----------
    files
        Name -> source of the files of the program.
    """
    trees = [tree for source in files.values() if (tree := parse_python(source)) is not None]
    libraries = libraries_of(files)
    if not libraries:
        return ()
    named, made = set(), set()
    for tree in trees:
        constants = _constants(tree)
        for call in _calls(tree):
            directories = {_top(text) for text in _texts(call, constants)}
            if _function_of(call) in _MAKES:
                made |= directories
            else:
                named |= directories
    defaults = {name for library in libraries for name in _DEFAULTS[library]}
    taken = {name.split("/")[0] for name in files}
    return tuple(sorted((defaults | named) - made - taken - {""}))


def libraries_of(files: Mapping[str, bytes]) -> list[str]:
    """Return the libraries with checkpoints of their own that a program imports."""
    imported = set()
    for source in files.values():
        tree = parse_python(source)
        for node in ast.walk(tree) if tree is not None else ():
            if isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
                imported |= {node.module, *(f"{node.module}.{one.name}" for one in node.names)}
    return [
        library
        for library in _DEFAULTS
        if any(name == library or name.startswith(f"{library}.") for name in imported)
    ]


def expected_rule(files: Mapping[str, bytes], policy: str) -> str:
    """Return one line: the rule by which several tasks restore their checkpoints, and why.

    Parameters
    ----------
    policy
        ``--restore``.
    """
    if policy not in ("auto", "strict"):
        return _("{rule}, because of --restore {rule}").format(rule=policy)
    libraries = libraries_of(files)
    for library in _PARTS:
        if library in libraries:
            return _(
                "union, because the tasks of {library} write parts of one checkpoint; chief, if "
                "only one task writes"
            ).format(library=library)
    if libraries:
        return _(
            "chief, because one task of {library} writes; union, if a strategy writes shards"
        ).format(library=libraries[0])
    return _("chief, if the file names of all tasks are equal; otherwise own")


def _constants(tree: ast.Module) -> dict[str, str]:
    """Return name -> text of the names that are assigned once."""
    found: dict[str, list[str | None]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.setdefault(node.id, []).append(None)
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target, value = node.targets[0], node.value
            is_text = isinstance(value, ast.Constant) and isinstance(value.value, str)
            if isinstance(target, ast.Name) and is_text and len(found[target.id]) == 1:
                found[target.id] = [str(value.value)]  # type: ignore[attr-defined]
    return {name: texts[0] for name, texts in found.items() if texts[0] is not None}


def _calls(tree: ast.Module) -> Iterator[ast.Call]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def _function_of(call: ast.Call) -> str:
    function = call.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _texts(call: ast.Call, constants: Mapping[str, str]) -> Iterator[str]:
    """Yield the texts in a call that name a directory."""
    name = _function_of(call)
    nodes = [word.value for word in call.keywords if word.arg in _ARGUMENTS]
    if name in _MAKES:
        ok = any(word.arg in ("exist_ok", "ignore_errors") for word in call.keywords)
        nodes = [] if ok else [*call.args]
        if (
            not ok
            and isinstance(call.func, ast.Attribute)
            and isinstance(call.func.value, ast.Call)
        ):
            nodes += call.func.value.args  # Path("out").mkdir()
    elif name in _FUNCTIONS:
        nodes += call.args[:1]
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.Name) and node.id in constants:
            yield constants[node.id]
        elif isinstance(node, ast.JoinedStr) and node.values:
            first = node.values[0]
            if isinstance(first, ast.Constant) and "/" in str(first.value).lstrip("./"):
                yield str(first.value)  # f"out/step_{step}"


def _top(text: str) -> str:
    """Return the first directory of a relative path; empty: there is none."""
    parts = [part for part in text.split("/") if part not in ("", ".")]
    outside = text.startswith(("/", "~", "%", "$")) or ".." in parts or ":" in text or "\0" in text
    return "" if outside or not parts or len(parts[0]) > 100 else parts[0]
