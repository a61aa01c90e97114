"""``%%submarine workflow NAME``: check, save and draw the workflow in a cell.

``cell_keys`` describes the keys, ``cell_text`` reads the text, ``workflow_files`` saves it.
``--run`` and ``--to`` call the commands of ``submarine workflow``.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

import click

from submarine_jobs.commands import CellBody, execute
from submarine_jobs.commands.grammar import CellVerb, option
from submarine_jobs.errors import UsageError
from submarine_jobs.frontends import Frontend, Outcome
from submarine_runtime.translation import _

# `headless` and `model` load modules that need the extra at the first use of a name.
from submarine_workflows import headless, model
from submarine_workflows.display import Caption, workflow_output
from submarine_workflows.local import missing_notebooks
from submarine_workflows.model import Kind, Node, Workflow
from submarine_workflows.notebook import cell_keys as keys
from submarine_workflows.notebook.cell_text import WorkflowHeader, read_cell
from submarine_workflows.notebook.workflow_files import check_name, folder_of, keep, notebook_of

TARGETS = ("local", "azkaban", "airflow", "cron")
_MAX_NOTICES = 10


@dataclass(frozen=True)
class CellRequest:
    """Target of the workflow, whether to run it now, and whether it has a schedule."""

    target: str
    run_now: bool
    scheduled: bool


class WorkflowCell(CellVerb):
    """The command, with completion of the cell's text."""

    def complete_text(self, before: str) -> list[str]:
        """Complete keys, names of nodes, and conditions."""
        return keys.complete(before)

    def explain_text(self, before: str) -> str | None:
        """Return one line about a key."""
        return keys.explain(before)


@click.command(
    "workflow",
    cls=WorkflowCell,
    extra="workflows",
    add_help_option=True,
)
@click.argument("name", metavar="NAME")
@option(
    "--schedule",
    default="",
    metavar="CRON",
    heading="When",
    help="Schedule, \"0 30 2 ? * *\": Quartz's fields, or crontab's five.",
)
@option(
    "--timezone",
    default="",
    metavar="ZONE",
    heading="When",
    help="Time zone of the schedule, Europe/Berlin.",
)
@option(
    "--run",
    "run_now",
    is_flag=True,
    heading="Actions",
    help="Run it now, on this machine or on the target of --to.",
)
@option(
    "--to",
    "target",
    type=click.Choice(TARGETS),
    metavar="WHERE",
    heading="Actions",
    help="Target: azkaban uploads and schedules it, airflow writes a DAG beside the notebook, cron "
    "shows its line, local runs it here.",
)
@click.pass_context
def workflow(
    ctx: click.Context,
    /,
    name: str,
    schedule: str,
    timezone: str,
    run_now: bool,
    target: str | None,
) -> Outcome:
    """Check, save and draw the workflow that the lines below describe.

    The lines are Flow 2.0 YAML, or Flow 1.0 job files, each headed by # NAME.job. The workflow is
    saved in NAME.flow beside the notebook, for %submarine workflow run|status|logs|... NAME.
    """
    frontend = ctx.find_object(Frontend) or Frontend()
    if run_now and target in ("airflow", "cron"):
        raise UsageError(
            _("--run cannot be combined with --to {target}, which only writes files.").format(
                target=target
            ),
            _("Omit --run, or run it here first with only --run."),
        )
    body = CellBody.of(ctx)
    notebook = notebook_of(frontend)
    header = WorkflowHeader(check_name(name), schedule, timezone, notebook.name if notebook else "")
    written = read_cell(body, header)
    then = run_now or target is not None
    if frontend.kind == "notebook" and not frontend.interactive and not then:
        # A scheduled run of this notebook must not change the file.
        return _outcome(written.workflow, None, [], handed_over=True)
    _check_written_in(written.workflow)
    path = keep(name, written.text, frontend)
    sentences = notices(written.workflow, frontend)
    outcome = _outcome(written.workflow, path, sentences, handed_over=bool(target))
    if not then:
        return outcome
    _show_first(outcome, frontend)
    request = CellRequest(target or "", run_now, bool(written.workflow.schedule))
    return _run_commands(path, request, frontend, outcome)


def _check_written_in(found: Workflow) -> None:
    """Check that nodes with ``cells:`` have a notebook."""
    cells = [node.name for _, node in found.walk() if node.kind is Kind.CELLS]
    if cells and not found.notebook:
        raise UsageError(
            _("`{cells}` runs cells of this notebook, and its path is unknown.").format(
                cells=cells[0]
            ),
            _("Save the notebook and run this cell again, or write `notebook: NAME.ipynb` in it."),
        )


def notices(found: Workflow, frontend: Frontend) -> list[str]:
    """Return missing notebooks, and cells that the saved notebook does not contain."""
    folder, own = folder_of(frontend), notebook_of(frontend)
    missing = missing_notebooks(found, folder)
    for _unused, node in found.walk():
        if node.kind is Kind.CELLS and own is not None and folder / found.notebook == own:
            missing += _unknown_cells(own, node)
    return missing[:_MAX_NOTICES]


def _unknown_cells(notebook: Path, node: Node) -> list[str]:
    """Return a sentence if the saved notebook lacks cells of a node."""
    # cost: nbformat (0.1 s), which only nodes of cells need.
    import nbformat

    try:
        document = nbformat.read(notebook, as_version=4)
    except Exception:  # incomplete or missing: it is read again when the node runs
        return []
    try:
        headless.select_cells(document, node.cells)
    except UsageError as error:
        return [
            _("`{node}`: {message} The saved file {notebook} was searched.").format(
                node=node.name, message=error.message, notebook=notebook.name
            )
        ]
    return []


def _outcome(
    found: Workflow, path: Path | None, sentences: list[str], *, handed_over: bool
) -> Outcome:
    name = found.name
    where = os.path.relpath(path) if path is not None else ""
    saved = _("Saved in {where}. `%submarine workflow run {name}` runs it here.").format(
        where=where, name=name
    )
    lines = [
        *sentences,
        saved if path is not None else _("Not saved in a file: this notebook runs unattended."),
    ]
    upcoming = model.next_runs(found)
    if found.schedule and not handed_over:
        lines.append(_("Its schedule is not active yet: use `--to` azkaban, airflow or cron."))
    bundle = workflow_output(found, Caption(upcoming, lines))
    value = {
        "name": name,
        "file": str(path) if path is not None else None,
        "nodes": sum(1 for _ in found.walk()),
        "schedule": found.schedule,
        "timezone": found.timezone,
        "next": [one.isoformat() for one in upcoming],
        "notices": sentences,
    }
    text, html = bundle.pop("text/plain"), bundle.pop("text/html")
    return Outcome(text, html, value, mime=bundle)


def _show_first(outcome: Outcome, frontend: Frontend) -> None:
    """Show the workflow before the requested command runs."""
    bundle = {**outcome.mime, "text/html": outcome.html, "text/plain": outcome.text}
    if frontend.add_output(bundle) is None:
        frontend.say(outcome.text)


def _run_commands(path: Path, request: CellRequest, frontend: Frontend, shown: Outcome) -> Outcome:
    """Run the commands of ``submarine workflow`` for ``--run`` and ``--to``."""
    file, here = str(path), str(path.parent)
    where = request.target or "local"
    azkaban = ["submit", file, "--to", "azkaban"]
    azkaban += ["--schedule"] if request.scheduled else []
    azkaban += ["--run"] if request.run_now else []
    words = {
        "local": ["run", file],
        "azkaban": azkaban,
        "airflow": ["export", file, "--to", "airflow", "-o", here],
        "cron": ["export", file, "--to", "cron"],
    }[where]
    done = execute(["workflow", *words], frontend)
    return replace(done, value={"workflow": shown.value, where: done.value})
