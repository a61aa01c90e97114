"""``doctor``: the checks of ``submarine_jobs.doctor`` as a table with fixes."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import click

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
from submarine_jobs.errors import ConfigError, SubmarineError
from submarine_jobs.frontends import JOB_FAILED, SUCCESS, Frontend, Outcome
from submarine_jobs.options import RoleOptions, RunOptions, count
from submarine_jobs.text import one_line
from submarine_runtime.translation import _, gettext_noop, ngettext

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from submarine_jobs.config import Config
    from submarine_jobs.doctor import DoctorContext, Result


@click.command("doctor", cls=Verb, example=("doctor", "doctor --profile prod", "doctor --node"))
@option("--node", is_flag=True, heading="Where", help="This machine is a node of the cluster.")
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
    roles = (RoleOptions("worker", workers),)
    requested = RunOptions(roles=roles, memory=memory, vcores=vcores, gpus=gpus)
    context = DoctorContext(config.profile, requested=requested)
    results = [_files(config, refused), *run_checks(context, CHECKS, node=node)]
    if context.on_yarn and not node:
        _remember(context, config)
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
