"""Which workflow is meant: a file's path, or the name of one that a cell of a notebook has kept.

The names of runs are ``local.runs``'s.
"""

from __future__ import annotations

from pathlib import Path

import click

from submarine_jobs.frontends import Frontend
from submarine_workflows.notebook import SUFFIX, folder_of, kept_file, kept_names, notebook_of


def find_workflow(text: str, frontend: Frontend) -> Path:
    """The file of a workflow; ``text`` as it is where nothing of that name is known.

    A name without a folder means ``NAME.flow`` beside the notebook, then a file of the working
    directory, else what a cell of this notebook has kept elsewhere.
    """
    path = Path(text).expanduser()
    if not text or "/" in text:
        return path
    beside = folder_of(frontend) / (text + SUFFIX)
    if notebook_of(frontend) is not None and beside.is_file():
        return beside
    if path.exists():
        return path
    for folder in dict.fromkeys((folder_of(frontend), Path.cwd())):
        for name in (text, text + SUFFIX):
            if (folder / name).is_file():
                return folder / name
    kept = kept_file(text, frontend)
    return kept if kept is not None and kept.is_file() else path


def names_here(frontend: Frontend) -> list[str]:
    """Names by which ``find_workflow`` finds one, for Tab."""
    try:
        beside = sorted(path.stem for path in folder_of(frontend).glob(f"*{SUFFIX}"))
    except OSError:
        beside = []
    return list(dict.fromkeys([*kept_names(frontend), *beside[:50]]))


class WorkflowFile(click.ParamType[Path]):
    """The type of an argument that names a workflow."""

    name = "workflow"

    def convert(
        self, value: str | Path, param: click.Parameter | None, ctx: click.Context | None
    ) -> Path:
        """The file."""
        if isinstance(value, Path):
            return value
        return find_workflow(value, (ctx.find_object(Frontend) if ctx else None) or Frontend())

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[click.shell_completion.CompletionItem]:
        """Names of kept workflows, and files."""
        from submarine_workflows.commands.completion import complete_files

        return complete_files(ctx, param, incomplete)


WORKFLOW_FILE = WorkflowFile()
