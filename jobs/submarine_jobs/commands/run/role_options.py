"""Options of ``run`` on roles, their sizes, the gang and its faults."""

from __future__ import annotations

from collections.abc import Callable

import click

from submarine_jobs.commands.grammar import Callback, ParsedType, option
from submarine_jobs.commands.run.option_types import (
    COMMAND,
    DURATION,
    FRACTION,
    MEMORY,
    PATIENCE,
    RESOURCES,
    ROLE,
    count,
    together,
)
from submarine_runtime.protocol.coordinator_config import POLICIES

#: Roles with options of Apache Submarine, such as ``--ps_resources``.
SUBMARINE_ROLES = ("worker", "ps", "chief", "evaluator")


def _number(role: str, what: str) -> Callable[[Callback], Callback]:
    aliases = (f"--num_{role}s", f"--{role}s") if role == "worker" else (f"--num_{role}",)
    return option(
        f"--{role}",
        f"{role}_count",
        aliases=aliases,
        type=count(f"The number of {role} tasks"),
        metavar="N",
        heading="Roles",
        help=what,
    )


def _parts(role: str) -> list[Callable[[Callback], Callback]]:
    """Return ``--ps_resources --ps_launch_cmd --ps_docker_image``, as in Apache Submarine."""
    shown = role in ("worker", "ps")
    return [
        option(
            f"--{role}_resources",
            type=RESOURCES,
            metavar="LIST",
            heading="Roles",
            in_help=shown,
            help="memory=8G,vcores=2,gpu=2 (chief_ and evaluator_ too)."
            if role == "ps"
            else "Size at once: memory=8G,vcores=2,gpu=2.",
        ),
        option(
            f"--{role}_launch_cmd",
            type=COMMAND,
            metavar="COMMAND",
            heading="Roles",
            in_help=shown,
            help="Shell command to run instead; %input_path% and the like are filled in."
            if role == "worker"
            else "Its command [the workers'].",
        ),
        option(
            f"--{role}_docker_image",
            metavar="IMAGE",
            heading="Roles",
            in_help=shown,
            help="Its image [the job's].",
        ),
    ]


ROLES = together(
    [
        _number("worker", "Number of workers [1]."),
        _number("ps", "Number of parameter servers [0]."),
        _number("chief", "A chief of its own [worker 0 is chief]."),
        _number("evaluator", "Number of evaluators [0]."),
        option(
            "--role",
            "role_texts",
            type=ROLE,
            multiple=True,
            metavar="NAME=N,...",
            heading="Roles",
            help="Any role: NAME=N,memory=4G,gpu=1,after=ROLE,cmd=COMMAND; repeatable.",
        ),
        *(part for role in SUBMARINE_ROLES for part in _parts(role)),
        option(
            "--tensorboard", is_flag=True, heading="Roles", help="Show TensorBoard with the job."
        ),
        option(
            "--tensorboard_resources",
            type=RESOURCES,
            metavar="LIST",
            heading="Roles",
            help="Its size [memory=1G,vcores=1].",
        ),
        option("--tensorboard_docker_image", metavar="IMAGE", heading="Roles", help="Its image."),
    ]
)

SIZES = together(
    [
        option(
            "--memory",
            type=MEMORY,
            metavar="SIZE",
            heading="Size",
            help="A task's memory: 8G, 512M, 8192 (MiB) [2G].",
        ),
        option(
            "--vcores",
            type=count("The number of vcores", 1),
            metavar="N",
            heading="Size",
            help="Virtual cores of a task [1].",
        ),
        option(
            "--gpu",
            "gpus",
            type=count("The number of GPUs"),
            metavar="N",
            heading="Size",
            help="GPUs of a worker, chief or evaluator [0].",
        ),
        option(
            "--processes",
            type=count("The number of processes", 1),
            metavar="N",
            heading="Size",
            help="Processes of the program in each container [the framework's].",
        ),
        option(
            "--timeout",
            type=DURATION,
            metavar="TIME",
            heading="Size",
            help="End the job, or the execution of a notebook, after 90s, 15m, 2h, 1h30m.",
        ),
    ]
)


def _count_option(
    name: str, text: str, what: str, minimum: int = 0
) -> Callable[[Callback], Callback]:
    return option(
        name, type=count(what, minimum), metavar="N", heading="Gang and faults", help=text
    )


def _time(name: str, text: str, kind: ParsedType = DURATION) -> Callable[[Callback], Callback]:
    return option(name, type=kind, metavar="TIME", heading="Gang and faults", help=text)


FAULTS = together(
    [
        _count_option("--min-workers", "Start with so many workers [all].", "The least number", 1),
        _time(
            "--gang-timeout",
            "Give containers back after so long without all of them; never [10m].",
            PATIENCE,
        ),
        _count_option("--gang-retries", "Then try again so often [5].", "The number of tries"),
        _count_option(
            "--max-restarts",
            "Restart after so many faults, whatever their cause [3, errors only after progress].",
            "The number of restarts",
        ),
        option(
            "--policy",
            aliases=("--success",),
            type=click.Choice(POLICIES),
            heading="Gang and faults",
            help="Who decides on success [the framework's, mostly chief].",
        ),
        option(
            "--allow-failures",
            type=FRACTION,
            metavar="F",
            heading="Gang and faults",
            help="Fraction of the tasks that may fail: 0.2 or 20% [0].",
        ),
        option(
            "--require-collective",
            is_flag=True,
            heading="Gang and faults",
            help="Fail the job if its tasks did not train together.",
        ),
        _time("--heartbeat", "Time between two heartbeats of a task [1s]."),
        _time("--lost-after", "A task that is silent for so long is lost [25s]."),
    ]
)
