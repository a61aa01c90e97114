"""Parameters of a notebook: read them as papermill does, and inject them into the document."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import yaml
from nbformat import NotebookNode

from submarine_jobs.errors import UsageError
from submarine_jobs.text import printable
from submarine_workflows.locations import place_of

_WORDS = {"True": True, "False": False, "None": None}


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
        found.update(_of_file(file))
    for name, text, raw in typed:
        found[name] = text if raw else as_value(text)
    for name in found:
        if not name.isidentifier():
            raise UsageError(
                f"{printable(name, 60)!r} is not a valid parameter name.",
                "It becomes a variable of the notebook: letters, digits and _.",
            )
    return found


def as_value(text: str) -> Any:
    """Convert text to a number, True, False or None if possible, as papermill does."""
    if text in _WORDS:
        return _WORDS[text]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _of_file(file: str) -> Mapping[str, Any]:
    from papermill.iorw import NoDatesSafeLoader

    try:
        found = yaml.load(place_of(file).read(), Loader=NoDatesSafeLoader)  # noqa: S506
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark is not None else ""
        raise UsageError(f"{printable(file, 200)}{line} is not valid YAML.") from None
    found = {} if found is None else found
    if not isinstance(found, dict) or not all(isinstance(name, str) for name in found):
        raise UsageError(
            f"{printable(file, 200)} contains no parameters.", "Write NAME: VALUE on each line."
        )
    return found


def inject(
    notebook: NotebookNode,
    parameters: dict[str, Any],
    kernel: str,
    language: str,
    warn: Callable[[str], None],
) -> NotebookNode:
    """Return the document with a cell that sets ``parameters``, after the one with that tag."""
    from papermill.exceptions import PapermillException
    from papermill.inspection import _infer_parameters
    from papermill.parameterize import parameterize_notebook

    if not parameters:
        return notebook
    known = [item.name for item in _infer_parameters(notebook, name=kernel, language=language)]
    for name in parameters:
        if known and name not in known:
            close = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean {printable(close[0], 60)}?" if close else "it is set anyway."
            warn(f"warning: The notebook has no parameter {name}; {hint}")
    try:
        changed: NotebookNode = parameterize_notebook(
            notebook, parameters, kernel_name=kernel, language=language, engine_name="submarine"
        )
    except PapermillException as error:
        raise UsageError(
            f"Parameters cannot be written for the kernel {printable(kernel, 60)}: "
            f"{printable(str(error), 200)}.",
            "Leave out -p and -f, or set them in the notebook.",
        ) from None
    return changed
