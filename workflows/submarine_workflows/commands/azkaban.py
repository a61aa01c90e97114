"""``submarine workflow submit`` and ``unschedule``.

The other commands (status, logs, cancel, history) are shared with local runs.
"""

from __future__ import annotations

from pathlib import Path

import click

from submarine_jobs.commands.grammar import Verb, option, parameters_option
from submarine_jobs.frontends import Frontend, Outcome
from submarine_runtime.translation import _
from submarine_workflows.commands.arguments import WORKFLOW_FILE
from submarine_workflows.runs import Concurrent, FailureAction

_TO = click.Choice(["azkaban"])


@click.command(
    cls=Verb,
    example=(
        "workflow submit nightly.flow --to azkaban --schedule",
        "workflow submit nightly.flow --to azkaban --run -p date 2026-11-22",
    ),
)
@click.argument("file", type=WORKFLOW_FILE)
@option("--to", "target", type=_TO, default="azkaban", help="Target scheduler [azkaban].")
@option("--run", is_flag=True, help="Start it now.")
@option("--schedule", is_flag=True, help="Run it by its `schedule:`.")
@parameters_option(_("A flow parameter of this run, or of each scheduled run. Repeatable."))
@option("--project", default="", metavar="NAME", help="Azkaban's project [the workflow's name].")
@option("--replace", is_flag=True, help="Remove flows of the project that are not in this file.")
@option(
    "--failure-action",
    type=click.Choice([str(one) for one in FailureAction]),
    help="Effect of a failure on other nodes [Azkaban's default: finishCurrent].",
)
@option(
    "--concurrent",
    type=click.Choice([str(one) for one in Concurrent]),
    help="Behaviour if the flow is already running [Azkaban's default: skip].",
)
@option(
    "--include",
    "extra",
    multiple=True,
    metavar="PATTERN",
    help="Include these files too. Repeatable.",
)
@option("--url", metavar="URL", help="URL of the Azkaban server [as in submarine.toml].")
@click.pass_obj
def submit(
    frontend: Frontend,
    /,
    file: Path,
    target: str,
    run: bool,
    schedule: bool,
    parameters: tuple[tuple[str, str], ...],
    project: str,
    replace: bool,
    failure_action: str | None,
    concurrent: str | None,
    extra: tuple[str, ...],
    url: str | None,
) -> Outcome:
    """Upload the workflow in FILE to Azkaban, and start or schedule it there."""
    # cost: requests and Azkaban's projects, which other verbs do not need.
    from submarine_workflows.azkaban import SubmitOptions
    from submarine_workflows.commands import azkaban_runs as verbs

    options = SubmitOptions(
        project, run, schedule, replace, dict(parameters), failure_action or "", concurrent or ""
    )
    return verbs.submit(frontend, file, options, url=url, extra=extra)


@click.command(cls=Verb, example=("workflow unschedule nightly",))
@click.argument("name")
@option("--from", "target", type=_TO, default="azkaban", help="Scheduler [azkaban].")
@option("--project", default="", metavar="NAME", help="Azkaban's project [the workflow's name].")
@option("--url", metavar="URL", help="URL of the Azkaban server [as in submarine.toml].")
@click.pass_obj
def unschedule(
    frontend: Frontend, /, name: str, target: str, project: str, url: str | None
) -> Outcome:
    """Remove the schedule of the workflow NAME (or in the file NAME) from Azkaban."""
    # cost: requests and Azkaban's projects, which other verbs do not need.
    from submarine_workflows.commands import azkaban_runs as verbs

    return verbs.unschedule(frontend, name, project=project, url=url)
