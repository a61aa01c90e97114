"""``submarine workflow run``: options of the command. ``session`` implements it."""

from __future__ import annotations

import time
from typing import Any

import click

from submarine_jobs.commands.grammar import (
    ParsedType,
    Verb,
    duration_option,
    option,
    parameters_option,
)
from submarine_jobs.errors import RefusedError, UsageError
from submarine_jobs.frontends import Frontend, Outcome
from submarine_jobs.model import parse_count
from submarine_runtime.translation import _
from submarine_workflows import local, notebook
from submarine_workflows.commands.arguments import (
    complete_files,
    complete_nodes_of_file,
    complete_runs,
    find_workflow,
    runs_of,
    runs_option,
)
from submarine_workflows.notifications import parse_command
from submarine_workflows.runs import Concurrent, FailureAction


@click.command(
    "run",
    cls=Verb,
    example=(
        "workflow run nightly.flow",
        "workflow run nightly.flow -p date 2026-11-22 --timeout 6h",
        "workflow run nightly.flow train",
        "workflow run nightly.flow --resume",
        "workflow run --resume nightly-20261122-013000-7f3a",
        "workflow run nightly.flow --notify './tell.sh ops@example.com'",
    ),
)
@click.argument("file", required=False, shell_complete=complete_files)
@click.argument("nodes", nargs=-1, metavar="[NODE]...", shell_complete=complete_nodes_of_file)
@parameters_option(
    _("Value of ${NAME}; overrides the workflow's `config:`, not a node's. Repeatable."), "What"
)
@option(
    "--disable", multiple=True, metavar="NODE", heading="What", help="Skip this node. Repeatable."
)
@option(
    "--resume",
    is_flag=False,
    flag_value="",
    metavar="[RUN]",
    heading="What",
    shell_complete=complete_runs,
    help="Resume a run that failed [FILE's newest run].",
)
@option(
    "--notebook",
    metavar="FILE",
    default="",
    heading="What",
    help="Notebook with the cells of `cells:` [the one that the workflow names].",
)
@option(
    "--outputs",
    metavar="DIR",
    default="",
    heading="What",
    help="Folder or URL for executed notebooks [the run's own folder].",
)
@option(
    "--max-parallel",
    type=ParsedType("number", lambda text: parse_count(text, _("The number of nodes"), 1)),
    default=None,
    metavar="N",
    heading="How",
    help="Maximum number of parallel nodes [10].",
)
@duration_option("--timeout", heading="How", help="End the run after that time; exit code 124.")
@option(
    "--failure-action",
    type=click.Choice([str(one) for one in FailureAction]),
    heading="How",
    help="After a failure: let running nodes finish, stop them, or run all independent nodes "
    "[finishCurrent, or the workflow's `failure.action`].",
)
@option(
    "--concurrent",
    type=click.Choice([str(one) for one in Concurrent]),
    default=str(Concurrent.SKIP),
    heading="How",
    help="If it is already running: skip this run, follow that run node by node, or ignore it.",
)
@option(
    "--on-interrupt",
    type=click.Choice(("cancel", "detach")),
    default="cancel",
    heading="How",
    help="Action for the jobs of stopped nodes [cancel].",
)
@option(
    "--notify",
    metavar="COMMAND",
    default="",
    heading="How",
    help="Command that receives JSON on standard input when the run fails.",
)
@option(
    "--scheduled",
    is_flag=True,
    heading="How",
    help="Started by a schedule (cron): report missed runs.",
)
@option(
    "--wait",
    is_flag=True,
    heading="How",
    help="In a notebook: wait until it has ended, as on a command line.",
)
@option("--dry-run", is_flag=True, heading="How", help="Show the commands without running them.")
@runs_option
@click.pass_context
def run(
    ctx: click.Context,
    /,
    file: str | None,
    nodes: tuple[str, ...],
    parameters: tuple[tuple[str, str], ...],
    disable: tuple[str, ...],
    resume: str | None,
    max_parallel: int | None,
    failure_action: str | None,
    concurrent: str,
    scheduled: bool,
    wait: bool,
    dry_run: bool,
    runs: str | None,
    **rest: Any,
) -> Outcome:
    """Run the workflow in FILE on this machine, or only the given NODEs.

    Nodes run as in Azkaban: in parallel if their dependencies allow it, with retries, conditions
    and embedded flows. Their output is written to files; `submarine workflow logs` prints it.
    Ctrl-C stops the nodes, which cancel their jobs. In a notebook the run is a separate process,
    which continues when the kernel stops, and FILE may be the name of a workflow in a cell.
    """
    if resume is not None and file is None and resume.endswith((".flow", ".yaml", ".yml", ".zip")):
        file, resume = resume, ""
    if file is None and resume is None:
        raise UsageError(_("No workflow is given."), _("Name its file: nightly.flow."))
    if rest["notify"]:
        parse_command(rest["notify"])
    options = local.RunOptions(
        parameters=dict(parameters),
        max_parallel=max_parallel or local.MAX_PARALLEL,
        failure_action=FailureAction(failure_action) if failure_action else None,
        concurrent=Concurrent(concurrent),
        **rest,
    )
    frontend = ctx.find_object(Frontend) or Frontend()
    session = local.LocalSession(runs_of(frontend, runs), frontend, options)
    path = find_workflow(file, frontend) if file is not None else None
    if dry_run:
        return session.dry_run(path, nodes, disable)
    if frontend.kind in ("notebook", "zeppelin"):
        unseen = frontend.kind == "notebook" and not frontend.interactive
        words = notebook.arguments_of(ctx, path, ("wait", "runs"))
        return notebook.launch(words, runs_of(frontend, runs), frontend, wait=wait or unseen)
    if resume is not None:
        return session.resume(path, resume, nodes, disable, time.time)
    if path is None:
        raise RefusedError(_("No workflow is given."))
    return session.start(path, nodes, disable, scheduled, time.time)
