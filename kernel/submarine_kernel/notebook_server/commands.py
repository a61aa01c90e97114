"""The verbs of ``submarine notebook``: start, stop, list, show and url."""

from __future__ import annotations

from typing import Any

import click

from submarine_jobs import display
from submarine_jobs.client import Job
from submarine_jobs.commands.grammar import (
    Verb,
    backend_option,
    complete_jobs,
    confirm_foreign,
    known_owner,
    option,
    profile_option,
    verb_group,
)
from submarine_jobs.commands.run import click_type, run_option, together
from submarine_jobs.errors import UsageError
from submarine_jobs.frontends import Frontend, Outcome
from submarine_jobs.model import NOTEBOOK_ROLE, format_duration
from submarine_jobs.options import RUN_OPTIONS, TIMEOUT, RunOptions
from submarine_kernel.notebook_server.access import (
    LINKS,
    NotebookAccess,
    access_of,
    wait_until_ready,
)
from submarine_kernel.notebook_server.forwarding import forward
from submarine_kernel.notebook_server.submission import (
    DEFAULT_IDLE,
    NotebookRequest,
    notebook_job,
    submit_notebook,
)
from submarine_runtime.protocol import JobRecord
from submarine_runtime.translation import _, gettext_noop

#: Number of the newest jobs that are searched for notebooks.
MAX_JOBS = 1000
PLACE = together([profile_option, backend_option])
#: Options of ``run`` that ``start`` has too.
_RUN_OPTIONS = (
    "env",
    "secrets",
    "quicklinks",
    "files",
    "archives",
    "memory",
    "vcores",
    "gpus",
    "idle_gpu",
    "queue",
    "node_label",
    "docker_image",
    "python_env",
    "profile",
    "backend",
)


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
@run_option("memory", heading="Size", help="Memory [2G].")
@run_option("vcores", heading="Size", help="Virtual cores [1].")
@run_option("gpus", heading="Size", help="GPUs [0].")
@run_option("queue", heading="Cluster", help="Queue of the cluster.")
@run_option("node_label", heading="Cluster", help="Only on nodes of this label.")
@run_option("docker_image", heading="Environment", help="Image of the container.")
@run_option(
    "python_env",
    heading="Environment",
    help="Python on the node, with JupyterLab: host, path:DIR, auto, archive:URI [host].",
)
@option(
    "--zeppelin-home",
    metavar="DIR",
    default="",
    heading="Environment",
    help="Directory of Zeppelin on the node.",
)
@run_option("env", heading="Environment", help="Environment variable; repeatable.")
@run_option(
    "secrets",
    heading="Environment",
    help="Secret variable: the value of the same variable here, or of the keyring, or the content "
    "of FILE; repeatable.",
)
@run_option("files", heading="Data", help="Copy a file to the container; repeatable.")
@run_option(
    "archives",
    heading="Data",
    help="Copy an archive to the container and unpack it; repeatable.",
)
@option(
    "--from",
    "previous",
    metavar="JOB",
    shell_complete=complete_jobs,
    heading="Data",
    help="Start with the notebooks of another notebook server.",
)
@option(
    "--notebooks",
    metavar="URI",
    heading="Data",
    help="Directory that keeps the notebooks too; its notebooks are available at the start.",
)
@run_option(
    "quicklinks",
    metavar="NAME=URL",
    heading="What",
    help="Additional link of the job, for example Docs=https://notebook-0:8080/; repeatable.",
)
@option(
    "--idle",
    type=click_type(TIMEOUT),
    metavar="TIME",
    default=DEFAULT_IDLE,
    heading="What",
    help=_("Stop after this time without use, or never [{default_idle}].").format(
        default_idle=format_duration(DEFAULT_IDLE)
    ),
)
@run_option("idle_gpu", heading="What")
@option("--no-wait", is_flag=True, heading="What", help="Return after the submission.")
@PLACE
@click.pass_obj
def start(
    frontend: Frontend, /, app: str, name: str | None, no_wait: bool, **given: Any
) -> Outcome:
    """Start JupyterLab or Zeppelin in a container, and show its address.

    The server is a job: list, logs, metrics and cancel apply to it. Each saved notebook is copied
    to the job directory within seconds, so it is kept when the container is lost.
    """
    request = NotebookRequest(
        app,
        RunOptions(
            name=name,
            checkpoint_path=given.pop("notebooks"),
            **{key: RUN_OPTIONS[key].collect(given[key]) for key in _RUN_OPTIONS},
        ),
        given["idle"],
        given["zeppelin_home"],
        given["previous"],
    )
    job = submit_notebook(request, frontend)
    if no_wait:
        text = _("{id} is submitted; `submarine notebook url {id}` shows its address.").format(
            id=job.id
        )
        return Outcome(text, value={"job_id": job.id, "job_dir": job.job_dir}, job=job)
    frontend.say(_("{id} is submitted.").format(id=job.id))
    try:
        access = wait_until_ready(job, frontend.show_progress)
    except KeyboardInterrupt:
        frontend.show_progress("")
        text = _("Stopped waiting; {id} continues.\n  submarine notebook url {id}\n").format(
            id=job.id
        )
        return Outcome(
            text + _("  submarine notebook stop {id}").format(id=job.id), exit_code=130, job=job
        )
    frontend.show_progress("")
    return _access_outcome(job, access, frontend)


@verb_group(
    {
        gettext_noop("Notebook servers"): {
            "start": gettext_noop("Start a notebook server in a container, and show its address."),
            "list": gettext_noop("List the running notebook servers."),
            "url": gettext_noop(
                "Show the address and the token of one, or serve it on this machine."
            ),
            "show": gettext_noop(
                "Show the job of one: state, reason, times, node, end of its log."
            ),
            "stop": gettext_noop("Stop one; its notebooks are kept."),
        }
    }
)
def notebook() -> None:
    """JupyterLab or Zeppelin in a container of the cluster."""


notebook.add_command(start)


@notebook.command("stop", cls=Verb, example=("notebook stop", "notebook stop lab-notebook"))
@click.argument("job", required=False, shell_complete=complete_jobs)
@PLACE
@click.pass_obj
def stop(
    frontend: Frontend, /, job: str | None, profile: str | None, backend: str | None
) -> Outcome:
    """Stop a notebook server, by default the newest; its notebooks are kept."""
    found, record = _find(frontend, job, profile, backend)
    if record.state.ended:
        text = _("{id} has ended already: {state}.").format(id=found.id, state=record.state.value)
        return Outcome(text, value=record.to_json(), job=found)
    if not confirm_foreign(
        found, frontend, "Stop", _("stopping it ends their work"), yes=False, option=""
    ):
        return Outcome(
            _("{id} continues.").format(id=found.id), value=record.to_json(), exit_code=1
        )
    after = found.cancel("submarine notebook stop")
    again = _("`submarine notebook start --from {id}` starts a server with its notebooks.").format(
        id=found.id
    )
    word = _("has ended") if after.state.ended else _("is ending")
    return Outcome(f"{found.id} {word}. {again}", value=after.to_json(), job=found)


@notebook.command("list", cls=Verb, example=("notebook list", "notebook list --all"))
@option("--all", "everything", is_flag=True, heading="Which", help="Include ended ones.")
@PLACE
@click.pass_obj
def list_notebooks(
    frontend: Frontend, /, everything: bool, profile: str | None, backend: str | None
) -> Outcome:
    """List the running notebook servers."""
    session = frontend.session(frontend.config({"profile": profile, "backend": backend}))
    records = [record for record in session.jobs(MAX_JOBS) if is_notebook(record)]
    shown = [record for record in records if everything or not record.state.ended]
    if not shown:
        ended = _(" `submarine notebook list --all` shows ended ones.") if records else ""
        text = _("No notebook server runs; `submarine notebook start` starts one.{ended}").format(
            ended=ended
        )
        return Outcome(text, value=[])
    table = display.table(shown)
    return Outcome(table.text, table.html, [record.to_json() for record in shown])


@notebook.command("show", cls=Verb, example=("notebook show lab-notebook",))
@click.argument("job", required=False, shell_complete=complete_jobs)
@PLACE
@click.pass_obj
def show(
    frontend: Frontend, /, job: str | None, profile: str | None, backend: str | None
) -> Outcome:
    """Show the job of a notebook server: state, reason, times, node, end of its log."""
    found, _ = _find(frontend, job, profile, backend)
    view = found.view()
    return Outcome(
        display.text(view, command=frontend.command), display.html(view), view.record.to_json()
    )


@notebook.command("url", cls=Verb, example=("notebook url", "notebook url --forward --port 8888"))
@click.argument("job", required=False, shell_complete=complete_jobs)
@option("--forward", "through", is_flag=True, heading="Access", help="Serve it on this machine.")
@option(
    "--port",
    type=int,
    metavar="PORT",
    default=0,
    heading="Access",
    help="Port of this machine for --forward [any free port].",
)
@PLACE
@click.pass_obj
def url(
    frontend: Frontend,
    /,
    job: str | None,
    through: bool,
    port: int,
    profile: str | None,
    backend: str | None,
) -> Outcome:
    """Show the address of a notebook server and its token.

    With --forward the server is available at http://127.0.0.1 of this machine, through the job's
    own encrypted port, until Ctrl-C.
    """
    found, record = _find(frontend, job, profile, backend)
    access = access_of(found, record)
    if not through:
        if port:
            raise UsageError(_("--port needs --forward."), _("Write --forward --port 8888."))
        return _access_outcome(found, access, frontend)
    if frontend.kind != "cli":
        raise UsageError(_("--forward runs until Ctrl-C."), _("Use it in a terminal."))
    if not 0 <= port < 1 << 16:
        raise UsageError(_("--port must be a number from 0 to 65535."))

    def show_address(base: str) -> None:
        frontend.say(_access_text(access, base))
        frontend.say(_("Ctrl-C ends the forwarding. The notebook server continues."))

    return Outcome(forward(found, port, show_address), job=found)


def is_notebook(record: JobRecord) -> bool:
    """Whether a job is a notebook server, by the roles that it requested."""
    requested = record.resources.get("requested")
    roles = set(requested) if isinstance(requested, dict) else set()
    return NOTEBOOK_ROLE in roles | {task.role for task in record.tasks}


def _find(
    frontend: Frontend, text: str | None, profile: str | None, backend: str | None
) -> tuple[Job, JobRecord]:
    """Return the named job, or the newest running notebook server of this user."""
    session = frontend.session(frontend.config({"profile": profile, "backend": backend}))
    if text is not None:
        job = notebook_job(session, text)
        return job, job.record()
    for record in session.jobs(MAX_JOBS):
        if is_notebook(record) and not record.state.ended:
            job = session.job(record.job_id)
            if not known_owner(job):
                return job, job.record()
    raise UsageError(
        _("No notebook server runs."),
        _(
            "`submarine notebook start` starts one; `submarine notebook list --all` shows "
            "ended ones."
        ),
    )


def _access_outcome(job: Job, access: NotebookAccess, frontend: Frontend) -> Outcome:
    """Return the address; the token only where the output is not saved."""
    endpoint = access.endpoint
    facts = {"job_id": job.id, "job_dir": job.job_dir, "page": endpoint.url}
    if frontend.kind == "notebook" or frontend.kind == "zeppelin":
        text = _(
            "{label} runs at {url}\n"
            "`submarine notebook url {id}` in a terminal shows the link with the token, which "
            "must not be saved in the output of a notebook."
        ).format(label=endpoint.label, url=endpoint.url, id=job.id)
        return Outcome(text, value=facts, job=job)
    text = _(
        "{access}\n"
        "The browser shows a warning, because the certificate is the job's own. Without a "
        "warning, or if the node cannot be reached:\n"
        "  submarine notebook url --forward {id}"
    ).format(access=_access_text(access), id=job.id)
    secret = {"url": access.url(), "user": access.user, "token": access.token}
    return Outcome(text, value={**facts, **secret}, job=job)


def _access_text(access: NotebookAccess, base: str | None = None) -> str:
    """Return the address with the token, below ``base`` if it is forwarded."""
    text = _("{label} is at {base}").format(label=access.endpoint.label, base=access.url(base))
    return (
        _("{text}\nLog in as {user} with {token}").format(
            text=text, user=access.user, token=access.token
        )
        if access.user
        else text
    )
