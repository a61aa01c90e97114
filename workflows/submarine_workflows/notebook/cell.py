"""``%%submarine workflow NAME``: the lines below are a workflow, which is checked, kept and drawn.

What may stand below is ``keys``'s to say, what it means ``cell_text``'s, where it is kept
``kept``'s. Runs nothing itself: ``--run`` and ``--to`` are the verbs of ``submarine workflow``.
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
from submarine_workflows.display import Caption, of_workflow
from submarine_workflows.local import missing_notebooks
from submarine_workflows.model import Kind, Node, Workflow, next_runs
from submarine_workflows.notebook import cell_keys as keys
from submarine_workflows.notebook.cell_text import Asked, read_cell
from submarine_workflows.notebook.workflow_files import check_name, folder_of, keep, notebook_of

TARGETS = ("local", "azkaban", "airflow", "cron")
_MAX_NOTICES = 10


@dataclass(frozen=True)
class Wished:
    """What is to be done with the workflow: where, whether at once, whether it has a schedule."""

    target: str
    run_now: bool
    scheduled: bool


class WorkflowCell(CellVerb):
    """The verb, with the words that may stand below it."""

    def complete_text(self, before: str) -> list[str]:
        """Keys, names of nodes, conditions."""
        return keys.complete(before)

    def explain_text(self, before: str) -> str | None:
        """One line about a key."""
        return keys.explain(before)


@click.command(
    "workflow",
    cls=WorkflowCell,
    add_help_option=True,
)
@click.argument("name", metavar="NAME")
@option(
    "--schedule",
    default="",
    metavar="CRON",
    heading="When",
    help="When it runs, \"0 30 2 ? * *\": Quartz's fields, or crontab's five.",
)
@option(
    "--timezone",
    default="",
    metavar="ZONE",
    heading="When",
    help="The zone that the schedule is read in, Europe/Berlin.",
)
@option(
    "--run",
    "run_now",
    is_flag=True,
    heading="What then",
    help="Run it now: on this machine, or where --to says.",
)
@option(
    "--to",
    "target",
    type=click.Choice(TARGETS),
    metavar="WHERE",
    heading="What then",
    help="Hand it over: azkaban uploads it and sets its schedule, airflow writes a DAG beside the "
    "notebook, cron shows its line, local runs it here.",
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
    """Check, keep and draw the workflow that the lines below describe.

    They are Flow 2.0's YAML, or Flow 1.0's job files, each headed by # NAME.job. It is kept in
    NAME.flow beside the notebook; %submarine workflow run|status|logs|... NAME work on it.
    """
    frontend = ctx.find_object(Frontend) or Frontend()
    if run_now and target in ("airflow", "cron"):
        raise UsageError(
            f"--run does not go with --to {target}, which writes files alone.",
            "Leave --run away, or run it here first with --run alone.",
        )
    body = CellBody.of(ctx)
    notebook = notebook_of(frontend)
    asked = Asked(check_name(name), schedule, timezone, notebook.name if notebook else "")
    written = read_cell(body, asked)
    then = run_now or target is not None
    if frontend.kind == "notebook" and not frontend.interactive and not then:
        # The same notebook on its schedule: what it was scheduled by stays as a person wrote it.
        return _shown(written.workflow, None, [], handed_over=True)
    _check_written_in(written.workflow)
    path = keep(name, written.text, frontend)
    told = notices(written.workflow, frontend)
    outcome = _shown(written.workflow, path, told, handed_over=bool(target))
    if not then:
        return outcome
    _show_first(outcome, frontend)
    wished = Wished(target or "", run_now, bool(written.workflow.schedule))
    return _then(path, wished, frontend, outcome)


def _check_written_in(found: Workflow) -> None:
    """Nodes with ``cells:`` need a notebook to have them from."""
    cells = [node.name for _, node in found.walk() if node.kind is Kind.CELLS]
    if cells and not found.notebook:
        raise UsageError(
            f"`{cells[0]}` runs cells of this notebook, and where that lies is not known.",
            "Save the notebook and run this cell again, or write `notebook: NAME.ipynb` in it.",
        )


def notices(found: Workflow, frontend: Frontend) -> list[str]:
    """What is not wrong yet: notebooks that are not there, cells that the saved one lacks."""
    folder, own = folder_of(frontend), notebook_of(frontend)
    missing = missing_notebooks(found, folder)
    for _, node in found.walk():
        if node.kind is Kind.CELLS and own is not None and folder / found.notebook == own:
            missing += _unknown_cells(own, node)
    return missing[:_MAX_NOTICES]


def _unknown_cells(notebook: Path, node: Node) -> list[str]:
    """A sentence where the saved notebook does not have the cells of a node."""
    import nbformat

    from submarine_workflows.headless import select_cells

    try:
        document = nbformat.read(notebook, as_version=4)
    except Exception:  # half written at this moment, or none at all: it is read when it runs
        return []
    try:
        select_cells(document, node.cells)
    except UsageError as error:
        return [f"`{node.name}`: {error.message} It is looked for in {notebook.name} as saved."]
    return []


def _shown(found: Workflow, path: Path | None, told: list[str], *, handed_over: bool) -> Outcome:
    name = found.name
    where = os.path.relpath(path) if path is not None else ""
    kept = f"Kept in {where}. `%submarine workflow run {name}` tries it here."
    lines = [
        *told,
        kept if path is not None else "Not kept in a file: this notebook runs without a person.",
    ]
    upcoming = next_runs(found)
    if found.schedule and not handed_over:
        lines.append(
            "Nothing fires its schedule yet: `--to` azkaban, airflow or cron hands it over."
        )
    bundle = of_workflow(found, Caption(upcoming, lines))
    value = {
        "name": name,
        "file": str(path) if path is not None else None,
        "nodes": sum(1 for _ in found.walk()),
        "schedule": found.schedule,
        "timezone": found.timezone,
        "next": [one.isoformat() for one in upcoming],
        "notices": told,
    }
    text, html = bundle.pop("text/plain"), bundle.pop("text/html")
    return Outcome(text, html, value, mime=bundle)


def _show_first(outcome: Outcome, frontend: Frontend) -> None:
    """The workflow itself, before what is done with it."""
    bundle = {**outcome.mime, "text/html": outcome.html, "text/plain": outcome.text}
    if frontend.picture(bundle) is None:
        frontend.say(outcome.text)


def _then(path: Path, wished: Wished, frontend: Frontend, shown: Outcome) -> Outcome:
    """What ``--run`` and ``--to`` stand for, in the words of ``submarine workflow``."""
    file, here = str(path), str(path.parent)
    where = wished.target or "local"
    azkaban = ["submit", file, "--to", "azkaban"]
    azkaban += ["--schedule"] if wished.scheduled else []
    azkaban += ["--run"] if wished.run_now else []
    words = {
        "local": ["run", file],
        "azkaban": azkaban,
        "airflow": ["export", file, "--to", "airflow", "-o", here],
        "cron": ["export", file, "--to", "cron"],
    }[where]
    done = execute(["workflow", *words], frontend)
    return replace(done, value={"workflow": shown.value, where: done.value})
