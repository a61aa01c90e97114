"""``submarine notebook start``: its options, and what it says; the work is ``starting``."""

from __future__ import annotations

from typing import Any

import click

from submarine_jobs.commands.grammar import (
    Verb,
    backend_option,
    complete_jobs,
    complete_queues,
    option,
    profile_option,
)
from submarine_jobs.commands.run import (
    ARCHIVE,
    ENV,
    FILE,
    MEMORY,
    PATIENCE,
    PYTHON_ENV,
    QUICKLINK,
    count,
    together,
)
from submarine_jobs.frontends import Frontend, Outcome
from submarine_jobs.model import format_duration
from submarine_jobs.options import RunOptions, unique
from submarine_kernel.notebook_server.access import wait_until_ready
from submarine_kernel.notebook_server.finding import told
from submarine_kernel.notebook_server.submission import (
    DEFAULT_IDLE,
    LINKS,
    Wish,
    start as start_job,
)

PLACE = together([profile_option, backend_option])


@click.command(
    "start",
    cls=Verb,
    example=(
        "notebook start --memory 8G --vcores 2 --gpu 4 --queue ml",
        "notebook start zeppelin-note-book-001 --app zeppelin --zeppelin-home /opt/zeppelin",
        "notebook start --from lab-notebook-20261120-7f3a",
    ),
)
@click.argument("name", required=False)
@option(
    "--app",
    type=click.Choice(sorted(LINKS)),
    default="lab",
    metavar="APP",
    heading="What",
    help="lab or zeppelin [lab].",
)
@option("--memory", type=MEMORY, metavar="SIZE", heading="Size", help="Memory [2G].")
@option(
    "--vcores",
    type=count("The number of cores", 1),
    metavar="N",
    heading="Size",
    help="Virtual cores [1].",
)
@option("--gpu", "gpus", type=count("--gpu"), metavar="N", heading="Size", help="GPUs [0].")
@option(
    "--queue",
    metavar="QUEUE",
    shell_complete=complete_queues,
    heading="Cluster",
    help="Queue of the cluster.",
)
@option("--node-label", metavar="LABEL", heading="Cluster", help="Only on nodes of this label.")
@option("--docker_image", metavar="IMAGE", heading="Environment", help="Image of the container.")
@option(
    "--python-env",
    type=PYTHON_ENV,
    metavar="ENV",
    heading="Environment",
    help="Python on the node, with JupyterLab: host, path:DIR, auto, archive:URI [host].",
)
@option(
    "--zeppelin-home",
    metavar="DIR",
    default="",
    heading="Environment",
    help="Where Zeppelin is on the node.",
)
@option(
    "--env",
    type=ENV,
    metavar="K=V",
    multiple=True,
    heading="Environment",
    help="Variable of it; repeatable.",
)
@option(
    "--file",
    type=FILE,
    metavar="SRC[:TARGET]",
    multiple=True,
    heading="Data",
    help="Bring a file along; repeatable.",
)
@option(
    "--archive",
    type=ARCHIVE,
    metavar="SRC[:DIR]",
    multiple=True,
    heading="Data",
    help="Bring an archive along and unpack it; repeatable.",
)
@option(
    "--from",
    "previous",
    metavar="JOB",
    shell_complete=complete_jobs,
    heading="Data",
    help="Begin with the notebooks of that one.",
)
@option(
    "--notebooks",
    metavar="URI",
    heading="Data",
    help="Keep the notebooks here too, and begin with those that are here.",
)
@option(
    "--quicklink",
    type=QUICKLINK,
    metavar="NAME=URL",
    multiple=True,
    heading="What",
    help="Further link of the job, for example Docs=https://notebook-0:8080/; repeatable.",
)
@option(
    "--idle",
    type=PATIENCE,
    metavar="TIME",
    default=DEFAULT_IDLE,
    heading="What",
    help=f"End when nobody has used it for so long, or never [{format_duration(DEFAULT_IDLE)}].",
)
@option("--no-wait", is_flag=True, heading="What", help="Return once the cluster has accepted it.")
@PLACE
@click.pass_obj
def start(
    frontend: Frontend, /, app: str, name: str | None, no_wait: bool, **given: Any
) -> Outcome:
    """Start JupyterLab or Zeppelin in a container, and say where it is.

    It is a job like others: list, logs, metrics and cancel know it. Each notebook that is saved is
    brought to the job directory within seconds, so nothing is lost with the container.
    """
    wish = Wish(
        app,
        RunOptions(
            name=name,
            env=unique(given.pop("env"), "--env"),
            quicklinks=unique(given.pop("quicklink"), "--quicklink"),
            files=tuple(dict.fromkeys(given.pop("file"))),
            archives=tuple(dict.fromkeys(given.pop("archive"))),
            checkpoint_path=given.pop("notebooks"),
            **{key: given[key] for key in _FOR_EVERY_JOB},
        ),
        given["idle"],
        given["zeppelin_home"],
        given["previous"],
    )
    job = start_job(wish, frontend)
    if no_wait:
        text = f"{job.id} is submitted; `submarine notebook url {job.id}` says where it is."
        return Outcome(text, value={"job_id": job.id, "job_dir": job.job_dir}, job=job)
    frontend.say(f"{job.id} is submitted.")
    try:
        address = wait_until_ready(job, frontend.renew)
    except KeyboardInterrupt:
        frontend.renew("")
        text = f"Stopped waiting; {job.id} goes on.\n  submarine notebook url {job.id}\n"
        return Outcome(text + f"  submarine notebook stop {job.id}", exit_code=130, job=job)
    frontend.renew("")
    return told(job, address, frontend)


_FOR_EVERY_JOB = (
    "memory",
    "vcores",
    "gpus",
    "queue",
    "node_label",
    "docker_image",
    "python_env",
    "profile",
    "backend",
)
