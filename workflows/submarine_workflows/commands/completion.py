"""Completion of runs, nodes and workflow files. Reads only local files and ignores errors."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from submarine_jobs.errors import SubmarineError
from submarine_jobs.frontends import Frontend
from submarine_workflows.commands.runs_option import runs_of
from submarine_workflows.commands.workflow_file import find_workflow, names_here

_MOST = 50
_FILES = (".flow", ".yaml", ".yml", ".zip")


def complete_runs(
    ctx: click.Context, _param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete names of workflows with runs, ``last``, and the newest runs."""
    runs = runs_of(ctx.find_object(Frontend) or Frontend(), ctx.params.get("runs"))
    words = [*runs.workflows(), "last", *(run.run for run in runs.all()[:_MOST])]
    return _beginning(dict.fromkeys(words), incomplete)


def complete_nodes_of_run(
    ctx: click.Context, _param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete the nodes of the run given before."""
    from submarine_workflows.runs import view_of

    runs = runs_of(ctx.find_object(Frontend) or Frontend(), ctx.params.get("runs"))
    with suppress(SubmarineError):
        view = view_of(runs.find(str(ctx.params.get("run"))))
        return _beginning((node.path for node in view.nodes), incomplete)
    return []


def complete_nodes_of_file(
    ctx: click.Context, _param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete the nodes of the workflow given before."""
    from submarine_workflows.formats import open_workflow
    from submarine_workflows.model import path_of

    with suppress(SubmarineError):
        frontend = ctx.find_object(Frontend) or Frontend()
        found = open_workflow(find_workflow(str(ctx.params.get("file")), frontend))
        return _beginning((path_of(node, flows) for flows, node in found.walk()), incomplete)
    return []


def complete_files(
    ctx: click.Context, _param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete names of workflows in cells, workflow files, and folders."""
    folder, slash, start = incomplete.rpartition("/")
    frontend = ctx.find_object(Frontend) or Frontend()
    found = names_here(frontend) if not slash and frontend.kind in ("notebook", "zeppelin") else []
    with suppress(OSError):
        for path in sorted(Path(folder or slash or ".").iterdir()):
            fits = path.name.startswith(start) and (start or not path.name.startswith("."))
            if fits and (path.suffix in _FILES or path.is_dir()):
                found.append(f"{folder}{slash}{path.name}{'/' if path.is_dir() else ''}")
    return _beginning(found[:_MOST], incomplete)


def _beginning(words: Iterable[str], incomplete: str) -> list[CompletionItem]:
    return [
        CompletionItem(word) for word in words if word.startswith(incomplete) and word.isprintable()
    ]
