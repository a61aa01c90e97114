"""``submarine notebook start|stop|list|show|url``: words for people; the work is beside."""

from __future__ import annotations

from typing import Any

import click

from submarine_jobs.commands import Mouth, Outcome
from submarine_jobs.commands.ownership import ask_if_foreign
from submarine_jobs.commands.run_option_types import (
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
from submarine_jobs.commands.shared_options import (
    backend_option,
    complete_jobs,
    complete_queues,
    profile_option,
)
from submarine_jobs.commands.verb import Verb, option
from submarine_jobs.errors import UsageError
from submarine_jobs.options.quantities import format_duration
from submarine_jobs.options.run_options import RunOptions, unique
from submarine_kernel.notebook.access import address_of, wait_until_ready
from submarine_kernel.notebook.finding import MOST, find_notebook, is_notebook, told, way_in
from submarine_kernel.notebook.forwarding import forward
from submarine_kernel.notebook.starting import DEFAULT_IDLE, LINKS, Wish
from submarine_kernel.notebook.starting import start as start_job

PLACE = together([profile_option, backend_option])


@click.group()
def notebook() -> None:
    """A whole JupyterLab or Zeppelin in a container of the cluster."""


@notebook.command(
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
@option("--vcores", type=count("The number of cores", 1), metavar="N", heading="Size", help="[1].")
@option("--gpu", "gpus", type=count("--gpu"), metavar="N", heading="Size", help="GPUs [0].")
@option(
    "--queue", metavar="QUEUE", shell_complete=complete_queues, heading="Cluster", help="Queue."
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
@option("--zeppelin-home", metavar="DIR", default="", heading="Environment", help="On the node.")
@option("--env", type=ENV, metavar="K=V", multiple=True, heading="Environment", help="Repeatable.")
@option(
    "--file", type=FILE, metavar="SRC[:TARGET]", multiple=True, heading="Data", help="Bring it."
)
@option(
    "--archive",
    type=ARCHIVE,
    metavar="SRC[:DIR]",
    multiple=True,
    heading="Data",
    help="Bring it along and unpack it.",
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
def start(mouth: Mouth, /, app: str, name: str | None, no_wait: bool, **given: Any) -> Outcome:
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
    job = start_job(wish, mouth)
    if no_wait:
        text = f"{job.id} is submitted; `submarine notebook url {job.id}` says where it is."
        return Outcome(text, value={"job_id": job.id, "job_dir": job.job_dir}, job=job)
    mouth.say(f"{job.id} is submitted.")
    try:
        address = wait_until_ready(job, mouth.renew)
    except KeyboardInterrupt:
        mouth.renew("")
        text = f"Stopped waiting; {job.id} goes on.\n  submarine notebook url {job.id}\n"
        return Outcome(text + f"  submarine notebook stop {job.id}", exit_code=130, job=job)
    mouth.renew("")
    return told(job, address, mouth)


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


@notebook.command("stop", cls=Verb, example=("notebook stop", "notebook stop lab-notebook"))
@click.argument("job", required=False, shell_complete=complete_jobs)
@PLACE
@click.pass_obj
def stop(mouth: Mouth, /, job: str | None, profile: str | None, backend: str | None) -> Outcome:
    """End a notebook, the newest that runs where none is named; its notebooks are kept."""
    found, record = find_notebook(mouth, job, profile, backend)
    if record.state.ended:
        text = f"{found.id} has ended already: {record.state.value}."
        return Outcome(text, value=record.to_json(), job=found)
    if not ask_if_foreign(found, mouth, "Stop", "stopping it ends their work", yes=False):
        return Outcome(f"{found.id} goes on.", value=record.to_json(), exit_code=1)
    after = found.cancel("submarine notebook stop")
    again = f"`submarine notebook start --from {found.id}` goes on with its notebooks."
    word = "has ended" if after.state.ended else "will end in a moment"
    return Outcome(f"{found.id} {word}. {again}", value=after.to_json(), job=found)


@notebook.command("list", cls=Verb, example=("notebook list", "notebook list --all"))
@option("--all", "everything", is_flag=True, heading="Which", help="Those that have ended, too.")
@PLACE
@click.pass_obj
def list_notebooks(
    mouth: Mouth, /, everything: bool, profile: str | None, backend: str | None
) -> Outcome:
    """List the notebooks that run."""
    from submarine_jobs import display

    session = mouth.session(mouth.config({"profile": profile, "backend": backend}))
    records = [record for record in session.jobs(MOST) if is_notebook(record)]
    shown = [record for record in records if everything or not record.state.ended]
    if not shown:
        return Outcome("There is no notebook; `submarine notebook start` starts one.", value=[])
    table = display.table(shown)
    return Outcome(table.text, table.html, [record.to_json() for record in shown])


@notebook.command("show", cls=Verb, example=("notebook show lab-notebook",))
@click.argument("job", required=False, shell_complete=complete_jobs)
@PLACE
@click.pass_obj
def show(mouth: Mouth, /, job: str | None, profile: str | None, backend: str | None) -> Outcome:
    """Show a notebook's job: state, reason, times, where it is, end of its log."""
    from submarine_jobs import display

    found, _ = find_notebook(mouth, job, profile, backend)
    view = found.view()
    return Outcome(
        display.text(view, command=mouth.command), display.html(view), view.record.to_json()
    )


@notebook.command("url", cls=Verb, example=("notebook url", "notebook url --forward --port 8888"))
@click.argument("job", required=False, shell_complete=complete_jobs)
@option("--forward", "through", is_flag=True, heading="Way", help="Serve it on this machine.")
@option(
    "--port",
    type=int,
    metavar="PORT",
    default=0,
    heading="Way",
    help="Port of this machine for --forward [any that is free].",
)
@PLACE
@click.pass_obj
def url(
    mouth: Mouth,
    /,
    job: str | None,
    through: bool,
    port: int,
    profile: str | None,
    backend: str | None,
) -> Outcome:
    """Say where a notebook is, with what lets you in.

    With --forward it serves the notebook at http://127.0.0.1 of this machine, through the job's
    own encrypted port, until Ctrl-C.
    """
    found, record = find_notebook(mouth, job, profile, backend)
    address = address_of(found, record)
    if not through:
        if port:
            raise UsageError("--port goes with --forward.", "Write --forward --port 8888.")
        return told(found, address, mouth)
    if mouth.kind != "cli":
        raise UsageError("--forward serves until Ctrl-C.", "Use it in a terminal.")
    if not 0 <= port < 1 << 16:
        raise UsageError("--port must be a number from 0 to 65535.")

    def tell(base: str) -> None:
        mouth.say(way_in(address, base))
        mouth.say("Ctrl-C ends the forwarding, not the notebook.")

    return Outcome(forward(found, port, tell), job=found)
