"""``submarine workflow check|graph``, and the command group. These commands run no workflow."""

from __future__ import annotations

from pathlib import Path

import click

from submarine_jobs.commands.grammar import Verb, option, verb_group
from submarine_jobs.errors import UsageError
from submarine_jobs.frontends import Outcome
from submarine_runtime.translation import _, gettext_noop, ngettext
from submarine_workflows import display, local, model
from submarine_workflows.commands.arguments import WORKFLOW_FILE, load_workflow
from submarine_workflows.commands.azkaban import submit, unschedule
from submarine_workflows.commands.export import export, holds, with_values
from submarine_workflows.commands.runs import VERBS

#: Commands by section, with one line of help each.
SECTIONS = {
    gettext_noop("Files"): {
        "check": gettext_noop("Check it and show when it runs next."),
        "graph": gettext_noop("Show or draw its nodes in order."),
        "export": gettext_noop("Write it for Airflow, cron or Azkaban."),
    },
    gettext_noop("Runs"): {
        "run": gettext_noop("Run it here, or resume a failed run."),
        "status": gettext_noop("Show a run and the status of its nodes."),
        "logs": gettext_noop("Print or follow the output of nodes."),
        "cancel": gettext_noop("End a run and the jobs of its nodes."),
        "history": gettext_noop("List runs and missed runs."),
    },
    gettext_noop("Azkaban"): {
        "submit": gettext_noop("Upload it, and start or schedule it there."),
        "unschedule": gettext_noop("Remove its schedule."),
    },
    gettext_noop("Used by nodes"): {
        "await": gettext_noop("Wait for data: a path, hdfs:// or another URL."),
        "holds": gettext_noop("Evaluate a condition on outputs of nodes."),
        "with-values": gettext_noop("Run a command with values from the environment."),
    },
}


@verb_group(SECTIONS, extra="workflows")
def workflow() -> None:
    """Run notebooks in order, as described by a workflow in Azkaban's Flow 2.0 format."""


@workflow.command(cls=Verb, example=("workflow check nightly.flow",))
@click.argument("file", type=WORKFLOW_FILE)
def check(file: Path) -> Outcome:
    """Check the workflow in FILE and print when it would run next."""
    found = load_workflow(file)
    nodes = sum(1 for _ in found.walk())
    runs = [moment.isoformat() for moment in model.next_runs(found)]
    text = ngettext("{found}: {nodes} node", "{found}: {nodes} nodes", nodes).format(
        found=found.name, nodes=nodes
    )
    folder = file if file.is_dir() else file.parent
    notices = local.missing_notebooks(found, folder) if file.suffix != ".zip" else []
    text += "." if notices else _(", no problems.")
    if runs:
        text += _(" Next runs by its schedule `{schedule}`: {runs}.").format(
            schedule=found.schedule, runs=", ".join(runs)
        )
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
    found = load_workflow(file)
    picture = display.as_svg(found)
    if target is not None:
        try:
            target.write_text(picture, encoding="utf-8")
        except OSError as exc:
            raise UsageError(
                _("{target} cannot be written: {strerror}.").format(
                    target=target, strerror=exc.strerror
                )
            ) from None
    value = [{"name": node.name, "dependsOn": list(node.depends_on)} for node in found.nodes]
    shown = display.workflow_output(found, display.Caption(model.next_runs(found)))
    del shown["text/plain"]
    lines = (
        [display.as_text(found), _("The drawing is in {target}.").format(target=target)]
        if target
        else [display.as_text(found)]
    )
    return Outcome("\n".join(lines), html=shown.pop("text/html"), value=value, mime=shown)


workflow.add_command(export)
workflow.add_command(holds)
workflow.add_command(with_values)
workflow.add_command(submit)
workflow.add_command(unschedule)
for verb in VERBS:
    workflow.add_command(verb)
