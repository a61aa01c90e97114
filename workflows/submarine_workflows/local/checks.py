"""Checks before a run starts: node types, notebooks, names of nodes.

``validation`` checks the workflow itself; these checks depend on the machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

from submarine_jobs.errors import UsageError
from submarine_runtime.translation import _
from submarine_workflows.model import (
    ExecutionSettings,
    Kind,
    Node,
    Problem,
    Workflow,
    WorkflowError,
    commands_of,
    path_of,
)
from submarine_workflows.runs import FailureAction


def missing_notebooks(workflow: Workflow, base: Path) -> list[str]:
    """Return a sentence for each node with a notebook path that does not exist in ``base``."""
    runs = [(node, node.notebook) for _, node in workflow.walk() if node.kind is Kind.NOTEBOOK]
    return [
        _("`{node}` runs {name}, which does not exist yet.").format(node=node.name, name=name)
        for node, name in runs
        if _is_path(name) and not (base / name).is_file()
    ]


def check_runnable(workflow: Workflow, settings: ExecutionSettings, base: Path | None) -> None:
    """Check that this machine can run the workflow.

    Parameters
    ----------
    base
        Folder of the notebooks; None if it is not known before the run.

    Raises
    ------
    WorkflowError
        With every node that cannot run.
    """
    problems: list[Problem] = []
    try:
        FailureAction.declared(workflow.config)
    except ValueError as exc:
        problems.append(
            Problem(0, _("`failure.action`: {error}.").format(error=exc), workflow.file)
        )
    for flows, node in workflow.walk():
        try:
            commands_of(workflow, node, flows, settings)
        except UsageError as exc:
            problems.append(Problem(node.line, str(exc), workflow.file))
            continue
        name = _notebook(workflow, node, settings)
        if base is not None and name and not (base / name).is_file():
            sentence = _("`{node}` runs {name}, which does not exist in {base}.").format(
                node=node.name, name=name, base=base
            )
            problems.append(Problem(node.line, sentence, workflow.file))
    if problems:
        raise WorkflowError(problems)


def _notebook(workflow: Workflow, node: Node, settings: ExecutionSettings) -> str:
    """Return the notebook of a node if it is a path that is already known."""
    name = node.notebook
    if node.kind is Kind.CELLS:
        name = settings.notebook or workflow.notebook
    return name if _is_path(name) else ""


def _is_path(name: str) -> bool:
    """Return whether a notebook is a known path on this machine."""
    return "://" not in name and "${" not in name


def disabled_nodes(
    workflow: Workflow, only: Sequence[str], without: Sequence[str]
) -> frozenset[str]:
    """Return the paths of the nodes to skip.

    Parameters
    ----------
    only
        Nodes to run; empty: all. A flow includes its nodes.
    without
        Nodes to skip.

    Raises
    ------
    UsageError
        If a node does not exist.
    """
    paths = [path_of(node, flows) for flows, node in workflow.walk()]
    for name in (*only, *without):
        if name not in paths:
            near = get_close_matches(name, paths, 1)
            right = (
                _("Did you mean {near}?").format(near=near[0])
                if near
                else _("It has: {paths}.").format(paths=", ".join(paths[:20]))
            )
            raise UsageError(
                _("{workflow} has no node {name}.").format(workflow=workflow.name, name=name[:80]),
                right,
            )
    found = set(without)
    if only:
        selected = {path for path in paths if any(_concerns(path, name) for name in only)}
        found |= set(paths) - selected
    return frozenset(found)


def _concerns(path: str, name: str) -> bool:
    """Return whether ``path`` is ``name``, inside it, or a flow that contains it."""
    return path == name or path.startswith(f"{name}:") or name.startswith(f"{path}:")
