"""``job run``: the command line of Apache Submarine, ``yarn jar ... job run``."""

from __future__ import annotations

import copy
from typing import Any

import click

from submarine_jobs import options
from submarine_jobs.commands.grammar import option, verb_group
from submarine_jobs.commands.run import RunVerb, run as run_verb
from submarine_jobs.frontends import Outcome
from submarine_runtime.translation import gettext_noop

_FILE = "job_description"


@verb_group(
    {
        gettext_noop("Jobs"): {
            "run": gettext_noop("Run a job: as run, or described by a YAML file with -f."),
        }
    }
)
def job() -> None:
    """Run a job by the command line of Apache Submarine."""


class JobRunVerb(RunVerb):
    """The verb ``job run``; the words of the description precede those of the command line."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """See ``click.Command``; a later word overrides the description."""
        own = args[: args.index("--")] if "--" in args else args
        with_description = click.Context(self, info_name=ctx.info_name, parent=ctx.parent)
        with_description.resilient_parsing = True
        given, _rest, _order = self.make_parser(with_description).parse_args(list(own))
        if not ctx.resilient_parsing and isinstance(path := given.get(_FILE), str):
            args = [*options.description_words(path), *args]
        return super().parse_args(ctx, args)


def _without_file(param: click.Parameter) -> click.Parameter:
    """Return a parameter of ``run``; ``-f`` has another meaning here."""
    if "-f" not in param.opts:
        return param
    changed = copy.copy(param)
    changed.opts = [name for name in param.opts if name != "-f"]
    return changed


@job.command(
    "run",
    cls=JobRunVerb,
    example=(
        "job run --name tf-job-001 --num_workers 2 --worker_resources memory=8G,vcores=2,gpu=2 \\",
        "      --input_path hdfs://nn/data --worker_launch_cmd 'python fit.py %input_path%'",
        "job run -f job.yaml",
        "job run -f job.yaml --num_workers 4 --dry-run",
    ),
)
@option(
    "-f",
    "--job_description",
    _FILE,
    metavar="FILE",
    expose_value=False,
    heading=gettext_noop("Program"),
    help="Job description of Apache Submarine (YAML); other options override it.",
)
@click.pass_context
def run(ctx: click.Context, /, **typed: Any) -> Outcome:
    """Run a job as `run` does, with the same options; -f names a job description.

    A description has the keys spec, configs, roles, scheduling, security and tensorBoard, or those
    of an experiment: meta, environment and spec.
    """
    return ctx.invoke(run_verb.callback, **typed) if run_verb.callback else Outcome()


run.params[1:1] = [_without_file(p) for p in run_verb.params if p.name != "as_json"]
