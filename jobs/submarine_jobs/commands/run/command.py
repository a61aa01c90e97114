"""``run``: parse the options and run the job; the steps are in ``run.flow``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click
from click.core import ParameterSource

from submarine_jobs.commands.grammar import Verb, convert_error, program_argument
from submarine_jobs.commands.run.arguments import options_of
from submarine_jobs.commands.run.declared_options import all_run_options
from submarine_jobs.commands.run.notebook import execute_notebook, job_options, notebook_run
from submarine_jobs.commands.run.notebook_options import NOTEBOOK_RUN
from submarine_jobs.frontends import Frontend, Outcome
from submarine_jobs.model import in_workflow_node
from submarine_jobs.options import RunOptions


class RunVerb(Verb):
    """The verb ``run``; words after ``--`` are arguments of the program."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """See ``click.Command``; remove the program's arguments first."""
        cut = args.index("--") if "--" in args else len(args)
        ctx.meta["program_args"] = tuple(args[cut + 1 :])
        return super().parse_args(ctx, args[:cut])

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """See ``click.Command``; add the program's arguments."""
        return [*super().collect_usage_pieces(ctx), "[-- ARGUMENTS...]"]


@click.command(
    "run",
    cls=RunVerb,
    example=(
        "run train.py --gpu 1 --memory 8G --queue ml -- --epochs 3",
        "run digits.ipynb --worker 4 --ps 2 --gpu 1 --memory 8G --tensorboard",
        "run tf-job-001 --num_workers 2 --worker_resources memory=8G,vcores=2,gpu=2 \\",
        "      --input_path hdfs://nn/data --worker_launch_cmd 'python fit.py %input_path%'",
        "run train.py --worker 2 --dry-run",
        "run nightly.ipynb -p date 2026-11-22 -o hdfs:///reports/nightly.ipynb --timeout 2h",
    ),
)
@program_argument
@all_run_options()
@NOTEBOOK_RUN
@click.pass_context
def run(ctx: click.Context, /, **typed: Any) -> Outcome:
    """Run a program, a notebook or the collected cells as a job.

    Without --wait it returns when the cluster has accepted the job. The options of the Apache
    Submarine command line have the same names here.

    A notebook with cells that start jobs is executed on this machine, as is any notebook with one
    of the options for the execution of a notebook.
    """
    # cost: the modules of a submission: `run --help` and the check of a command line need none.
    from submarine_jobs.commands.run.flow import run_job

    frontend = ctx.find_object(Frontend) or Frontend()
    execution = notebook_run(ctx, typed)
    if execution is not None:
        return execute_notebook(execution, frontend)
    if ctx.get_parameter_source("on_interrupt") is ParameterSource.DEFAULT and in_workflow_node():
        # Stopping a workflow node also stops its job.
        typed["on_interrupt"] = "cancel"
    return run_job(options_of(job_options(ctx, typed), ctx.meta["program_args"]), frontend)


def parse_run(argv: Sequence[str]) -> RunOptions:
    """Parse the words after ``run``, without running the job.

    Raises
    ------
    UsageError
        For invalid options.
    """
    try:
        with run.make_context("run", list(argv)) as ctx:
            ctx.params.pop("as_json", None)
            return options_of(job_options(ctx, ctx.params), ctx.meta["program_args"])
    except click.ClickException as error:
        raise convert_error(error) from None
