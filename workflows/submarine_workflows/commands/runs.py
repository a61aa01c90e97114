"""``submarine workflow status|logs|cancel|history|await``."""

from __future__ import annotations

import functools
import time

import click

from submarine_jobs.commands.grammar import (
    AS_JSON,
    ParsedType,
    Verb,
    duration_option,
    option,
    parameters_option,
    profile_option,
)
from submarine_jobs.errors import UsageError
from submarine_jobs.frontends import Frontend, Outcome
from submarine_jobs.model import Profile, parse_count
from submarine_jobs.text import duration
from submarine_runtime.translation import _
from submarine_workflows import notebook, runs as run_views
from submarine_workflows.azkaban import is_azkaban_run
from submarine_workflows.commands.arguments import (
    complete_nodes_of_run,
    complete_runs,
    runs_of,
    runs_option,
)
from submarine_workflows.commands.run_workflow import run
from submarine_workflows.model import NEED_TIMEOUT


def _count(text: str) -> int:
    return parse_count(text, _("The number of lines"), 0)


@click.command("status", cls=Verb, example=("workflow status", "workflow status nightly"))
@click.argument("run", metavar="[RUN | NAME]", default="last", shell_complete=complete_runs)
@runs_option
@click.pass_obj
def status(frontend: Frontend, /, run: str, runs: str | None) -> Outcome:
    """Show a run of a workflow and the status of each node; by default the newest run."""
    if is_azkaban_run(run):
        # cost: requests, which only Azkaban's runs need.
        from submarine_workflows.commands import azkaban_runs as verbs

        return verbs.status(frontend, run)
    found = runs_of(frontend, runs).find(run)
    view = run_views.view_of(found)
    if frontend.kind in ("notebook", "zeppelin"):
        return notebook.show_run(found, frontend)
    now = time.time()
    return Outcome(
        run_views.table_of(view, now), html=run_views.html_of(view, now), value=view.to_json()
    )


@click.command("logs", cls=Verb, example=("workflow logs nightly train", "workflow logs last -f"))
@click.argument("run", metavar="RUN", shell_complete=complete_runs)
@click.argument("node", required=False, shell_complete=complete_nodes_of_run)
@option("--follow", "-f", is_flag=True, heading="What", help="Continue until it has ended.")
@option(
    "--attempt",
    type=ParsedType("number", lambda text: parse_count(text, _("The attempt"), 1)),
    metavar="N",
    heading="What",
    help="An earlier attempt of NODE, counted from 1 [the newest].",
)
@option(
    "--tail",
    type=ParsedType("number", _count),
    metavar="N",
    heading="What",
    help="The last N lines.",
)
@runs_option
@click.pass_context
def logs(
    ctx: click.Context,
    /,
    run: str,
    node: str | None,
    follow: bool,
    attempt: int | None,
    tail: int | None,
    runs: str | None,
) -> Outcome:
    """Print the output of a node's commands; without NODE, of all nodes in order."""
    frontend = ctx.find_object(Frontend) or Frontend()
    if attempt is not None and (node is None or follow):
        raise UsageError(_("--attempt requires a NODE and excludes --follow."))
    as_json = bool(ctx.meta[AS_JSON])
    if is_azkaban_run(run):
        # cost: requests, which only Azkaban's runs need.
        from submarine_workflows.commands import azkaban_runs as verbs

        live = follow and not as_json
        return verbs.logs(frontend, run, node or "", follow=live, attempt=attempt, tail=tail)
    found = runs_of(frontend, runs).find(run)
    if follow and not as_json:
        return run_views.follow_logs(found, node, frontend, tail)
    return run_views.log_outcome(found, node, attempt, tail, frontend, as_json=as_json)


@click.command("cancel", cls=Verb, example=("workflow cancel nightly",))
@click.argument("run", metavar="RUN", shell_complete=complete_runs)
@runs_option
@click.pass_obj
def cancel(frontend: Frontend, /, run: str, runs: str | None) -> Outcome:
    """End a run: its nodes are stopped and cancel their jobs."""
    if is_azkaban_run(run):
        # cost: requests, which only Azkaban's runs need.
        from submarine_workflows.commands import azkaban_runs as verbs

        return verbs.cancel(frontend, run)
    # cost: the views of runs with cronsim, which `workflow --help` does not need.
    from submarine_workflows.commands.local_runs import cancel_run

    return cancel_run(runs_of(frontend, runs).find(run), frontend)


@click.command("history", cls=Verb, example=("workflow history", "workflow history nightly"))
@click.argument("name", required=False, shell_complete=complete_runs)
@option(
    "--limit",
    type=ParsedType("number", _count),
    default=None,
    metavar="N",
    heading="What",
    help="At most N runs [30].",
)
@runs_option
@click.pass_obj
def history(
    frontend: Frontend, /, name: str | None, limit: int | None, runs: str | None
) -> Outcome:
    """List runs, newest first, and scheduled runs that were missed."""
    if name is not None and is_azkaban_run(name):
        # cost: requests, which only Azkaban's runs need.
        from submarine_workflows.commands import azkaban_runs as verbs

        return verbs.history(frontend, name, 30 if limit is None else limit)
    # cost: the views of runs with cronsim, which `workflow --help` does not need.
    from submarine_workflows.commands.local_runs import history_of

    return history_of(runs_of(frontend, runs), name, 30 if limit is None else limit, time.time())


@click.command(
    "await",
    cls=Verb,
    example=(
        "workflow await hdfs:///data/2026-11-22/_SUCCESS --timeout 6h",
        "workflow await 's3://bucket/{date}/_SUCCESS' -p date 2026-11-22",
    ),
)
@click.argument("url")
@duration_option("--timeout", heading="How", help="Give up after that time, exit code 124 [6h].")
@parameters_option(_("Value of {NAME}; repeatable."), "What")
@profile_option
@click.pass_obj
def await_(
    frontend: Frontend,
    /,
    url: str,
    timeout: float | None,
    parameters: tuple[tuple[str, str], ...],
    profile: str | None,
) -> Outcome:
    """Wait until a file or folder exists: a path, hdfs:// or any URL that fsspec supports."""
    # cost: clients of file systems, which the other verbs do not need.
    from submarine_workflows.commands.await_data import fill_parameters, wait_for_data
    from submarine_workflows.locations import without_password

    limit = NEED_TIMEOUT if timeout is None else timeout
    target = fill_parameters(url, dict(parameters))

    @functools.cache
    def current_profile() -> Profile:
        # A process that serves several users has several configurations.
        return frontend.config({"profile": profile} if profile else {}).profile

    took = wait_for_data(target, limit, frontend.say, current_profile)
    shown = without_password(target)
    return Outcome(
        _("{shown} exists after {took}.").format(shown=shown, took=duration(took)),
        value={"url": shown, "took": took},
    )


VERBS = (run, status, logs, cancel, history, await_)
