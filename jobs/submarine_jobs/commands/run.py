"""``run``: the options as typed, and the command itself; its steps are in ``run_flow``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from submarine_jobs.commands.mouth import Mouth
from submarine_jobs.commands.outcome import Outcome
from submarine_jobs.commands.run_words import options_of
from submarine_jobs.commands.shared_options import (
    backend_option,
    complete_programs,
    complete_queues,
    duration_option,
    profile_option,
    program_argument,
)
from submarine_jobs.commands.verb import Parsed, Verb, option
from submarine_jobs.config_values import python_of
from submarine_jobs.options import pairs
from submarine_jobs.options.quantities import parse_count, parse_memory, parse_resources
from submarine_jobs.options.run_options import RunOptions

FRAMEWORKS = ("auto", "any", "tensorflow")
_TYPES: dict[str, Parsed] = {
    "workers": Parsed("number", lambda text: parse_count(text, "The number of workers", 1)),
    "memory": Parsed("size", parse_memory),
    "vcores": Parsed("number", lambda text: parse_count(text, "The number of vcores", 1)),
    "gpus": Parsed("number", lambda text: parse_count(text, "The number of GPUs")),
    "resources": Parsed("resources", parse_resources),
    "env": Parsed("pair", pairs.parse_env, prefix=False),
    "quicklink": Parsed("pair", pairs.parse_quicklink, prefix=False),
    "conf": Parsed("pair", pairs.parse_conf, prefix=False),
    "localization": Parsed("localization", pairs.parse_localization, prefix=False),
    "with": Parsed("names", lambda text: _names(text, "--with"), prefix=False),
    "return": Parsed("names", lambda text: _names(text, "--return"), prefix=False),
}


def _python_env(text: str) -> str:
    python_of(text, "")
    return text


def _names(text: str, name: str) -> tuple[str, ...]:
    from submarine_jobs.values import parse_names

    return parse_names(text, name)


class RunVerb(Verb):
    """``run``: keeps what stands after ``--`` for the program."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Cut the program's arguments off before click sees them."""
        cut = args.index("--") if "--" in args else len(args)
        ctx.meta["program_args"] = tuple(args[cut + 1 :])
        return super().parse_args(ctx, args[:cut])

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """As click's, with the part that click does not see."""
        return [*super().collect_usage_pieces(ctx), "[-- ARGUMENTS...]"]


@click.command(
    "run",
    cls=RunVerb,
    example=(
        "run train.py --gpu 1 --memory 8G --queue ml -- --epochs 3",
        "run digits.ipynb --memory 2G --wait",
        "run tf-job-001 --num_workers 1 --worker_resources memory=8G,vcores=2,gpu=2 \\",
        "      --input_path hdfs://nn/data --worker_launch_cmd 'python fit.py %input_path%'",
        "run train.py --memory 2G --dry-run",
    ),
)
@program_argument
@option("--name", metavar="NAME", heading="Program", help="Name of the job [the file's].")
@option(
    "--program",
    aliases=("--file",),
    metavar="FILE",
    shell_complete=complete_programs,
    heading="Program",
    help="File to run [main.py of the cells].",
)
@option("--args", "args_text", metavar="TEXT", heading="Program", help="Arguments, as one text.")
@option(
    "--worker_launch_cmd",
    "command",
    metavar="COMMAND",
    heading="Program",
    help="Shell command to run instead; %input_path% and the like are filled in.",
)
@option(
    "--framework",
    type=click.Choice(FRAMEWORKS, case_sensitive=False),
    default="auto",
    heading="Program",
    help="Framework to set up [auto].",
)
@option(
    "--python-env",
    type=Parsed("env", _python_env, prefix=False, choices=("host", "path:")),
    metavar="ENV",
    heading="Program",
    help="Python on the nodes: host (this one) or path:DIR.",
)
@option(
    "--env",
    type=_TYPES["env"],
    metavar="K=V",
    multiple=True,
    heading="Program",
    help="Environment variable of the program; repeatable.",
)
@option(
    "--worker",
    "workers",
    aliases=("--num_workers", "--workers"),
    type=_TYPES["workers"],
    default=1,
    metavar="N",
    heading="Size",
    help="Number of workers; 1 in this release.",
)
@option(
    "--memory",
    type=_TYPES["memory"],
    metavar="SIZE",
    heading="Size",
    help="The program's memory: 8G, 512M, 8192 (MiB) [2G].",
)
@option("--vcores", type=_TYPES["vcores"], metavar="N", heading="Size", help="Virtual cores [1].")
@option("--gpu", "gpus", type=_TYPES["gpus"], metavar="N", heading="Size", help="GPUs [0].")
@option(
    "--worker_resources",
    "resources",
    type=_TYPES["resources"],
    metavar="LIST",
    heading="Size",
    help="All at once: memory=8G,vcores=2,gpu=2.",
)
@duration_option("--timeout", heading="Size", help="End the job after 90s, 15m, 2h, 1h30m.")
@option("--input_path", metavar="URI", heading="Data", help="Input; fills %input_path%.")
@option("--checkpoint_path", metavar="URI", heading="Data", help="Fills %checkpoint_path%.")
@option("--saved_model_path", metavar="URI", heading="Data", help="Fills %saved_model_path%.")
@option(
    "--localization",
    type=_TYPES["localization"],
    metavar="SRC:TARGET[:rw]",
    multiple=True,
    heading="Data",
    help="Bring a file or directory to the job; repeatable.",
)
@option(
    "--with",
    "with_names",
    type=_TYPES["with"],
    metavar="NAMES",
    multiple=True,
    heading="Data",
    help="Send the values of these variables: x,y.",
)
@option(
    "--return",
    "return_names",
    type=_TYPES["return"],
    metavar="NAMES",
    multiple=True,
    heading="Data",
    help="Bring these variables of the program back: acc,history.",
)
@option(
    "--queue",
    metavar="QUEUE",
    heading="Cluster",
    help="Queue [the profile's].",
    shell_complete=complete_queues,
)
@profile_option
@backend_option
@option(
    "--conf",
    type=_TYPES["conf"],
    metavar="K=V",
    multiple=True,
    heading="Cluster",
    help="Setting of the profile for this run; repeatable.",
)
@option(
    "--quicklink",
    type=_TYPES["quicklink"],
    metavar="LABEL=URL",
    multiple=True,
    heading="Cluster",
    help="Link shown with the job and on its YARN page; repeatable.",
)
@option(
    "--wait",
    aliases=("--wait_job_finish",),
    is_flag=True,
    heading="Flow",
    help="Stay until the job has ended, showing its log.",
)
@option(
    "--on-interrupt",
    type=click.Choice(("detach", "cancel")),
    default="detach",
    heading="Flow",
    help="What Ctrl-C does to a job that is waited for [detach].",
)
@option("--dry-run", is_flag=True, heading="Flow", help="Check and show, submit nothing.")
@option("--force", is_flag=True, heading="Flow", help="Go on in spite of what the checks found.")
@option("--verbose", is_flag=True, heading="Flow", help="Say each step.")
@option("--insecure", is_flag=True, hidden=True, expose_value=False)
@click.pass_context
def run(ctx: click.Context, /, **typed: Any) -> Outcome:
    """Run a program, a notebook or the collected cells as a job.

    It returns as soon as the cluster has accepted the job, unless --wait is given. The options of
    the Apache Submarine command line are taken by their own names.
    """
    from submarine_jobs.commands.run_flow import run_job

    mouth = ctx.find_object(Mouth) or Mouth()
    return run_job(options_of(typed, ctx.meta["program_args"]), mouth)


def parse_run(argv: Sequence[str]) -> RunOptions:
    """The options that the words after ``run`` mean; runs nothing.

    Raises
    ------
    UsageError
        For anything that ``run`` refuses to understand.
    """
    from submarine_jobs.commands.usage import as_sentence

    try:
        with run.make_context("run", list(argv)) as ctx:
            ctx.params.pop("as_json", None)
            return options_of(ctx.params, ctx.meta["program_args"])
    except click.ClickException as error:
        raise as_sentence(error) from None
