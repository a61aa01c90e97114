"""What can be known to be wrong before a run starts: types, notebooks, names of nodes.

``validation`` has looked at the workflow itself; here it meets this machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

from submarine_jobs.errors import UsageError
from submarine_workflows.model import (
    Kind,
    Node,
    Problem,
    Setting,
    Workflow,
    WorkflowError,
    commands_of,
    path_of,
)
from submarine_workflows.runs import FailureAction


def missing_notebooks(workflow: Workflow, base: Path) -> list[str]:
    """A sentence for each notebook of a node that is not in ``base``, where it is a path."""
    runs = [(node, node.notebook) for _, node in workflow.walk() if node.kind is Kind.NOTEBOOK]
    return [
        f"`{node.name}` runs {name}, which is not here yet."
        for node, name in runs
        if _is_path(name) and not (base / name).is_file()
    ]


def check_here(workflow: Workflow, setting: Setting, base: Path | None) -> None:
    """Raise for what this machine cannot run.

    Parameters
    ----------
    base
        Where notebooks lie; None: not known before the run.

    Raises
    ------
    WorkflowError
        With every node that could not run.
    """
    problems: list[Problem] = []
    try:
        FailureAction.declared(workflow.config)
    except ValueError as exc:
        problems.append(Problem(0, f"`failure.action`: {exc}.", workflow.file))
    for flows, node in workflow.walk():
        try:
            commands_of(workflow, node, flows, setting)
        except UsageError as exc:
            problems.append(Problem(node.line, str(exc), workflow.file))
            continue
        name = _notebook(workflow, node, setting)
        if base is not None and name and not (base / name).is_file():
            sentence = f"`{node.name}` runs {name}, which is not in {base}."
            problems.append(Problem(node.line, sentence, workflow.file))
    if problems:
        raise WorkflowError(problems)


def _notebook(workflow: Workflow, node: Node, setting: Setting) -> str:
    """The notebook of a node where it is a path that is known already."""
    name = node.notebook
    if node.kind is Kind.CELLS:
        name = setting.notebook or workflow.notebook
    return name if _is_path(name) else ""


def _is_path(name: str) -> bool:
    """Whether it is known already where a notebook lies, and that is on this machine."""
    return "://" not in name and "${" not in name


def disabled_by(workflow: Workflow, only: Sequence[str], without: Sequence[str]) -> frozenset[str]:
    """Paths of the nodes that are skipped.

    Parameters
    ----------
    only
        Nodes that run, none: all; a flow stands for its nodes.
    without
        Nodes that do not run.

    Raises
    ------
    UsageError
        If there is no such node.
    """
    paths = [path_of(node, flows) for flows, node in workflow.walk()]
    for name in (*only, *without):
        if name not in paths:
            near = get_close_matches(name, paths, 1)
            right = f"Did you mean {near[0]}?" if near else f"It has: {', '.join(paths[:20])}."
            raise UsageError(f"{workflow.name} has no node {name[:80]}.", right)
    found = set(without)
    if only:
        kept = {path for path in paths if any(_about(path, name) for name in only)}
        found |= set(paths) - kept
    return frozenset(found)


def _about(path: str, name: str) -> bool:
    """Whether ``path`` is ``name``, lies in it, or is a flow around it."""
    return path == name or path.startswith(f"{name}:") or name.startswith(f"{path}:")
