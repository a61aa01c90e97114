"""Arguments and options of ``submarine workflow``: workflow files, runs, and their completion.

A workflow is named by a path, or by the name that a notebook cell has given it. Completion reads
only local files and ignores errors.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from submarine_jobs.commands.grammar import Callback, option
from submarine_jobs.errors import SubmarineError
from submarine_jobs.frontends import Frontend
from submarine_workflows import formats, model
from submarine_workflows.model import Workflow, WorkflowError
from submarine_workflows.notebook import SUFFIX, folder_of, notebook_of, saved_file, saved_names
from submarine_workflows.runs import Runs, view_of

_MOST = 50
_FILES = (".flow", ".yaml", ".yml", ".zip")


def complete_runs(
    ctx: click.Context, _param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete names of workflows with runs, ``last``, and the newest runs."""
    runs = runs_of(ctx.find_object(Frontend) or Frontend(), ctx.params.get("runs"))
    words = [*runs.workflows(), "last", *(run.run for run in runs.all()[:_MOST])]
    return _items(dict.fromkeys(words), incomplete)


def complete_nodes_of_run(
    ctx: click.Context, _param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete the nodes of the run given before."""
    runs = runs_of(ctx.find_object(Frontend) or Frontend(), ctx.params.get("runs"))
    with suppress(SubmarineError):
        view = view_of(runs.find(str(ctx.params.get("run"))))
        return _items((node.path for node in view.nodes), incomplete)
    return []


def complete_nodes_of_file(
    ctx: click.Context, _param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete the nodes of the workflow given before."""
    with suppress(SubmarineError):
        frontend = ctx.find_object(Frontend) or Frontend()
        found = formats.open_workflow(find_workflow(str(ctx.params.get("file")), frontend))
        return _items((model.path_of(node, flows) for flows, node in found.walk()), incomplete)
    return []


def complete_files(
    ctx: click.Context, _param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete names of workflows in cells, workflow files, and folders."""
    folder, slash, start = incomplete.rpartition("/")
    frontend = ctx.find_object(Frontend) or Frontend()
    found = known_names(frontend) if not slash and frontend.kind in ("notebook", "zeppelin") else []
    with suppress(OSError):
        for path in sorted(Path(folder or slash or ".").iterdir()):
            fits = path.name.startswith(start) and (start or not path.name.startswith("."))
            if fits and (path.suffix in _FILES or path.is_dir()):
                found.append(f"{folder}{slash}{path.name}{'/' if path.is_dir() else ''}")
    return _items(found[:_MOST], incomplete)


def _items(words: Iterable[str], incomplete: str) -> list[CompletionItem]:
    return [
        CompletionItem(word) for word in words if word.startswith(incomplete) and word.isprintable()
    ]


def runs_option(command: Callback) -> Callback:
    """Add ``--runs DIR`` to a command."""
    return option(
        "--runs",
        metavar="DIR",
        heading="Where",
        help="Folder of runs, their journals and logs [the user's state directory].",
    )(command)


def runs_of(frontend: Frontend, folder: str | None) -> Runs:
    """Return the runs in ``folder``, by default in the state directory."""
    home = frontend.config({}).profile.state_dir / "workflows"
    return Runs(Path(folder).expanduser().absolute() if folder else home, home)


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
    saved = saved_file(text, frontend)
    return saved if saved is not None and saved.is_file() else path


def known_names(frontend: Frontend) -> list[str]:
    """Return the names that ``find_workflow`` accepts, for completion."""
    try:
        beside = sorted(path.stem for path in folder_of(frontend).glob(f"*{SUFFIX}"))
    except OSError:
        beside = []
    return list(dict.fromkeys([*saved_names(frontend), *beside[:50]]))


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
        return complete_files(ctx, param, incomplete)


WORKFLOW_FILE = WorkflowFile()


def load_workflow(file: Path) -> Workflow:
    """Return the workflow in ``file``; raise WorkflowError with all its problems."""
    found = formats.open_workflow(file)
    problems = model.check(found)
    if problems:
        raise WorkflowError(problems)
    return found
