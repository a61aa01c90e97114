"""``doctor``: the checks of ``submarine_jobs.doctor`` as a table with fixes."""

from __future__ import annotations

import contextlib
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from submarine_jobs import doctor as checks
from submarine_jobs.backends.yarn import driver
from submarine_jobs.commands.grammar import (
    Verb,
    backend_option,
    cache_queues,
    option,
    profile_option,
)
from submarine_jobs.commands.run import click_type, run_option
from submarine_jobs.config import load_config
from submarine_jobs.display import columns
from submarine_jobs.errors import ClusterError, ConfigError, SubmarineError, UsageError
from submarine_jobs.frontends import JOB_FAILED, SUCCESS, Frontend, Outcome
from submarine_jobs.options import RoleOptions, RunOptions, count
from submarine_jobs.text import one_line
from submarine_runtime.translation import _, gettext_noop, ngettext

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from submarine_jobs.config import Config
    from submarine_jobs.doctor import DoctorContext, Result

#: Default of ``--script``.
_SCRIPT = "submarine-fix.sh"


@click.command("doctor", cls=Verb, example=("doctor", "doctor --profile prod", "doctor --node"))
@option("--node", is_flag=True, heading="Where", help="This machine is a node of the cluster.")
@option(
    "--nodes",
    is_flag=True,
    heading="Nodes of the cluster",
    help="Run a small probe on the first 20 nodes, and show a table of them.",
)
@option(
    "--node-list",
    metavar="A,B",
    heading="Nodes of the cluster",
    help="Probe these nodes.",
)
@option(
    "--all",
    "everything",
    is_flag=True,
    heading="Nodes of the cluster",
    help="Probe all nodes, after a question.",
)
@option("--yes", is_flag=True, heading="Nodes of the cluster", help="Do not ask.")
@option(
    "--fix",
    is_flag=True,
    heading="Fixes",
    help="Number the findings that a shell script can fix.",
)
@option(
    "--items",
    metavar="N,M|all",
    heading="Fixes",
    help="Write the script for these numbers of --fix; it is not run.",
)
@option("--script", metavar="FILE", heading="Fixes", help=f"File of the script [{_SCRIPT}].")
@option(
    "--stop-driver",
    is_flag=True,
    heading="Instead",
    help="End the background JVM that talks to YARN; the next job starts a new one.",
)
@option(
    "--worker",
    "workers",
    type=click_type(count(gettext_noop("The number of workers"), 1)),
    metavar="N",
    default=1,
    heading="Job size",
    help="Number of workers [1].",
)
@run_option("memory", heading="Job size", help="Memory [2G].")
@run_option("vcores", heading="Job size", help="Virtual cores [1].")
@run_option("gpus", heading="Job size", help="GPUs [0].")
@run_option("queue", heading="Job size")
@profile_option
@backend_option
@click.pass_obj
def doctor(
    frontend: Frontend,
    /,
    node: bool,
    nodes: bool,
    node_list: str | None,
    everything: bool,
    yes: bool,
    fix: bool,
    items: str | None,
    script: str | None,
    stop_driver: bool,
    workers: int,
    memory: int | None,
    vcores: int | None,
    gpus: int | None,
    queue: str | None,
    profile: str | None,
    backend: str | None,
) -> Outcome:
    """Check this machine and the cluster; each finding says what would be right.

    It changes nothing but a small file in the job root, which it removes. Exit code 1 when a check
    found an error.
    """
    # cost: `doctor --help` needs none of the checks.
    from submarine_jobs.doctor import CHECKS, DoctorContext, Status, run_checks

    options = {"profile": profile, "backend": backend, "queue": queue}
    try:
        config, refused = frontend.read_config(options), None
    except ConfigError as error:
        config, refused = _without_refused_file(options), error
    if stop_driver:
        return _stop_driver(config)
    if nodes or everything or node_list is not None:
        listed = [name.strip() for name in (node_list or "").split(",") if name.strip()]
        if node_list is not None and not listed:
            raise UsageError(_("--node-list names no node."), _("Write --node-list A,B."))
        return _probe_nodes(frontend, config, listed, everything=everything, yes=yes)
    roles = (RoleOptions("worker", workers),)
    requested = RunOptions(roles=roles, memory=memory, vcores=vcores, gpus=gpus)
    context = DoctorContext(config.profile, requested=requested)
    results = [_files(config, refused), *run_checks(context, CHECKS, node=node)]
    if context.on_yarn and not node:
        _remember(context, config)
    if fix or items is not None:
        return _write_fixes(context, results, items, Path(script or _SCRIPT))
    lines = result_lines(results)
    found = {status: sum(r.status is status for r in results) for status in Status}
    errors, warnings = found[Status.ERROR], found[Status.WARNING]
    lines += [
        "",
        _("{errors}, {warnings}, {ok} ok, {skipped} skipped.").format(
            errors=ngettext("{count} error", "{count} errors", errors).format(count=errors),
            warnings=ngettext("{count} warning", "{count} warnings", warnings).format(
                count=warnings
            ),
            ok=found[Status.OK],
            skipped=found[Status.SKIPPED],
        ),
    ]
    return Outcome(
        text="\n".join(lines),
        value={"profile": config.profile.name, "checks": [r.to_json() for r in results]},
        exit_code=JOB_FAILED if errors else SUCCESS,
    )


def _write_fixes(
    context: DoctorContext, results: Sequence[Result], items: str | None, script: Path
) -> Outcome:
    """Show the findings that a script can fix, or write it for the chosen ones."""
    fixes = checks.fixes_of(context, results)
    if not fixes:
        return Outcome(_("There is no finding that a script can fix."), value={"fixes": []})
    lines = checks.menu(fixes)
    value = {"fixes": [{**one.result.to_json(), "machines": one.machines} for one in fixes]}
    if items is None:
        hint = _("Write a script with `submarine doctor --fix --items 1,2`, or --items all.")
        return Outcome("\n".join([*lines, "", hint]), value=value)
    chosen = checks.chosen_fixes(fixes, items)
    try:
        script.write_text(checks.script_of(chosen), encoding="utf-8")
    except OSError as exc:
        raise UsageError(
            _("{script} cannot be written: {error}.").format(script=script, error=exc.strerror),
            _("Name another file with --script."),
        ) from exc
    machines = dict.fromkeys(machine for one in chosen for machine in one.machines)
    use = _("{script} is written, and nothing has been run. Read it, then run on each machine:")
    lines = [use.format(script=script), ""]
    lines += [f"    sh {shlex.quote(str(script))} dry-run {machine}" for machine in machines]
    lines += ["", _("`apply` in place of `dry-run` runs the commands, `undo` takes them back.")]
    return Outcome("\n".join(lines), value={**value, "script": str(script)})


def _probe_nodes(
    frontend: Frontend, config: Config, listed: Sequence[str], *, everything: bool, yes: bool
) -> Outcome:
    """Run the probe on nodes of the cluster, and show a row for each."""
    context = checks.DoctorContext(config.profile)
    if context.no_cluster:
        raise UsageError(
            _("--nodes needs a YARN cluster, and {why_not}.").format(why_not=context.no_cluster),
            _("Choose one with --profile."),
        )
    known = checks.running_nodes(context)
    chosen = checks.choose_nodes(known, listed, everything=everything)
    running = sum(one.running for one in known)
    if not chosen:
        raise ClusterError(_("The cluster has no running node."), _("Start the NodeManagers."))
    if everything and not listed and not yes:
        question = ngettext(
            "Run a probe on {count} node, in small groups?",
            "Run a probe on {count} nodes, in small groups?",
            running,
        ).format(count=running)
        if not frontend.confirm(question):
            return Outcome(_("Nothing was run; --yes asks no question."), exit_code=JOB_FAILED)
    rows = checks.probe_nodes(frontend.session(config), context, chosen, frontend.say)
    checks.remember_drivers(config.profile, rows)
    cells = [tuple(one_line(cell) for cell in row) for row in checks.table_rows(rows)]
    lines = [columns.text(checks.COLUMNS, cells)]
    for row in rows:
        for sentence, fix in row.problems:
            lines.append(f"{row.status:<8} {one_line(row.node)}: {one_line(sentence)}")
            lines.append(f"{'':8} -> {one_line(fix)}")
    return Outcome(
        text="\n".join([*lines, "", checks.summary(rows, running)]),
        value={"profile": config.profile.name, "nodes": [row.to_json() for row in rows]},
        exit_code=JOB_FAILED if any(row.status is checks.Status.ERROR for row in rows) else SUCCESS,
    )


def result_lines(results: Sequence[Result]) -> list[str]:
    """Return the results as text; checks that were not run for the same reason share a line."""
    unchecked: dict[str, list[str]] = {}
    for result in results:
        if result.unchecked:
            unchecked.setdefault(result.sentence, []).append(result.name)
    width = max(len(result.name) for result in results)
    lines = []
    for result in results:
        name, sentence = result.name, one_line(result.sentence)
        if result.unchecked:
            if not (names := unchecked.pop(result.sentence, [])):
                continue
            if len(names) > 1:
                name = _("{count} checks").format(count=len(names))
                sentence = f"{sentence.removesuffix('.')}: {', '.join(names)}."
        lines.append(f"{result.status:<8} {name:<{width}}  {sentence}")
        if result.fix:
            lines.append(f"{'':8} {'':{width}}  -> {one_line(result.fix)}")
    return lines


def _without_refused_file(options: Mapping[str, str | None]) -> Config:
    """Return the configuration without the project's file, else without the site's file too.

    The other checks run with it; submissions do not.
    """
    try:
        return load_config(options, project=False)
    except ConfigError:
        return load_config(options, project=False, site=False)


def _files(config: Config, refused: ConfigError | None) -> Result:
    # cost: `doctor --help` needs none of the checks.
    from submarine_jobs.doctor import Result, Status

    name = "configuration files"
    if refused is not None:
        return Result(name, Status.ERROR, refused.message, refused.fix)
    read = ", ".join(str(path) for path in config.files)
    return Result(
        name, Status.OK, _("Read {read}.").format(read=read) if read else _("There is none.")
    )


def _stop_driver(config: Config) -> Outcome:
    ended = driver.stop_driver(config.profile)
    words = ngettext(
        "{count} driver was ended; jobs go on.", "{count} drivers were ended; jobs go on.", ended
    )
    text = words.format(count=ended) if ended else _("No driver is running.")
    return Outcome(text=text, value={"stopped": ended})


def _remember(context: DoctorContext, config: Config) -> None:
    """Store the names of the queues for completion."""
    with contextlib.suppress(SubmarineError):
        queues = context.yarn.overview().queues
        cache_queues(config, [queue.name for queue in queues if queue.state == "RUNNING"])
