"""Find a workflow by path, or by the name that a notebook cell has given it."""

from __future__ import annotations

from pathlib import Path

import click

from submarine_jobs.frontends import Frontend
from submarine_workflows.notebook import SUFFIX, folder_of, kept_file, kept_names, notebook_of


def find_workflow(text: str, frontend: Frontend) -> Path:
    """Return the file of a workflow; ``text`` itself if no such name is known.

    A name without a folder refers to ``NAME.flow`` beside the notebook, then to a file of the
    working directory, then to a file that a cell of this notebook has saved elsewhere.
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
    """Return the names that ``find_workflow`` accepts, for completion."""
    try:
        beside = sorted(path.stem for path in folder_of(frontend).glob(f"*{SUFFIX}"))
    except OSError:
        beside = []
    return list(dict.fromkeys([*kept_names(frontend), *beside[:50]]))


class WorkflowFile(click.ParamType[Path]):
    """Parameter type of an argument that names a workflow."""

    name = "workflow"

    def convert(
        self, value: str | Path, param: click.Parameter | None, ctx: click.Context | None
    ) -> Path:
        """Return the file."""
        if isinstance(value, Path):
            return value
        return find_workflow(value, (ctx.find_object(Frontend) if ctx else None) or Frontend())

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[click.shell_completion.CompletionItem]:
        """Complete names of saved workflows and files."""
        from submarine_workflows.commands.completion import complete_files

        return complete_files(ctx, param, incomplete)


WORKFLOW_FILE = WorkflowFile()
