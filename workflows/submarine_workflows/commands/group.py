"""``submarine workflow check|graph``: a workflow is looked at, nothing is run.

What they find out is found by ``validation`` and drawn by ``drawing``.
"""

from __future__ import annotations

from pathlib import Path

import click

from submarine_jobs.commands.grammar import Verb, option, verb_group
from submarine_jobs.errors import UsageError
from submarine_jobs.frontends import Outcome
from submarine_workflows.commands.azkaban import submit, unschedule
from submarine_workflows.commands.export import export, holds, with_values
from submarine_workflows.commands.runs import VERBS
from submarine_workflows.commands.workflow_file import WORKFLOW_FILE
from submarine_workflows.model import Workflow, WorkflowError

#: The verbs by section, each with one line.
SECTIONS = {
    "Files": {
        "check": "Say what is wrong with a workflow, or when it runs next.",
        "graph": "Show its nodes in their order, or draw them.",
        "export": "Write it for Airflow, cron or Azkaban.",
    },
    "Runs": {
        "run": "Run it here, or go on with a run that failed.",
        "status": "Show a run and where each of its nodes stands.",
        "logs": "Print what the commands of nodes wrote, or follow it.",
        "cancel": "End a run and the jobs of its nodes.",
        "history": "List runs, and those that were missed.",
    },
    "Azkaban": {
        "submit": "Upload it, and start or schedule it there.",
        "unschedule": "Take it off the schedule.",
    },
    "What nodes call": {
        "await": "Wait for data: a path, hdfs:// or another URL.",
        "holds": "Say whether a condition on outputs of nodes holds.",
        "with-values": "Run a command with values from the environment.",
    },
}


@verb_group(SECTIONS)
def workflow() -> None:
    """Notebooks that run after each other, in Azkaban Flow 2.0's terms."""


def sound(file: Path) -> Workflow:
    """The workflow in ``file``, or every problem that it has."""
    from submarine_workflows.formats import open_workflow
    from submarine_workflows.model import check as problems_of

    found = open_workflow(file)
    problems = problems_of(found)
    if problems:
        raise WorkflowError(problems)
    return found


@workflow.command(cls=Verb, example=("workflow check nightly.flow",))
@click.argument("file", type=WORKFLOW_FILE)
def check(file: Path) -> Outcome:
    """Say what is wrong with the workflow in FILE, or when it would run next."""
    from submarine_workflows.local import missing_notebooks
    from submarine_workflows.model import next_runs

    found = sound(file)
    nodes = sum(1 for _ in found.walk())
    runs = [moment.isoformat() for moment in next_runs(found)]
    text = f"{found.name}: {nodes} node{'s' if nodes != 1 else ''}"
    folder = file if file.is_dir() else file.parent
    notices = missing_notebooks(found, folder) if file.suffix != ".zip" else []
    text += "." if notices else ", nothing wrong."
    if runs:
        text += f" Its schedule `{found.schedule}` comes true next at {', '.join(runs)}."
    value = {
        **{"name": found.name, "nodes": nodes, "schedule": found.schedule, "next": runs},
        "notices": notices,
    }
    return Outcome("\n".join([text, *notices]), value=value)


@workflow.command(cls=Verb, example=("workflow graph nightly.flow --svg nightly.svg",))
@click.argument("file", type=WORKFLOW_FILE)
@option("--svg", "target", type=click.Path(path_type=Path), help="Write a picture there.")
def graph(file: Path, target: Path | None) -> Outcome:
    """Show the nodes of the workflow in FILE in an order in which they may run."""
    from submarine_workflows.display import Caption, as_svg, as_text, of_workflow
    from submarine_workflows.model import next_runs

    found = sound(file)
    picture = as_svg(found)
    if target is not None:
        try:
            target.write_text(picture, encoding="utf-8")
        except OSError as exc:
            raise UsageError(f"{target} cannot be written: {exc.strerror}.") from None
    value = [{"name": node.name, "dependsOn": list(node.depends_on)} for node in found.nodes]
    shown = of_workflow(found, Caption(next_runs(found)))
    del shown["text/plain"]
    told = [as_text(found), f"The picture is in {target}."] if target else [as_text(found)]
    return Outcome("\n".join(told), html=shown.pop("text/html"), value=value, mime=shown)


workflow.add_command(export)
workflow.add_command(holds)
workflow.add_command(with_values)
workflow.add_command(submit)
workflow.add_command(unschedule)
for verb in VERBS:
    workflow.add_command(verb)
