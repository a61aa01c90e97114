"""``submarine notebook stop|list|show|url``: words for people; the rest lies beside."""

from __future__ import annotations

import click

from submarine_jobs.commands.grammar import Verb, ask_if_foreign, complete_jobs, option, verb_group
from submarine_jobs.errors import UsageError
from submarine_jobs.frontends import Frontend, Outcome
from submarine_kernel.notebook_server.access import address_of
from submarine_kernel.notebook_server.finding import MOST, find_notebook, is_notebook, told, way_in
from submarine_kernel.notebook_server.forwarding import forward
from submarine_kernel.notebook_server.start_command import PLACE, start


@verb_group(
    {
        "Notebook servers": {
            "start": "Start one in a container, and say where it is.",
            "list": "List those that run.",
            "url": "Say where one is, with what lets you in, or serve it here.",
            "show": "Show one's job: state, reason, times, where it is, end of its log.",
            "stop": "End one; its notebooks are kept.",
        }
    }
)
def notebook() -> None:
    """A whole JupyterLab or Zeppelin in a container of the cluster."""


notebook.add_command(start)


@notebook.command("stop", cls=Verb, example=("notebook stop", "notebook stop lab-notebook"))
@click.argument("job", required=False, shell_complete=complete_jobs)
@PLACE
@click.pass_obj
def stop(
    frontend: Frontend, /, job: str | None, profile: str | None, backend: str | None
) -> Outcome:
    """End a notebook, the newest that runs where none is named; its notebooks are kept."""
    found, record = find_notebook(frontend, job, profile, backend)
    if record.state.ended:
        text = f"{found.id} has ended already: {record.state.value}."
        return Outcome(text, value=record.to_json(), job=found)
    if not ask_if_foreign(
        found, frontend, "Stop", "stopping it ends their work", yes=False, option=""
    ):
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
    frontend: Frontend, /, everything: bool, profile: str | None, backend: str | None
) -> Outcome:
    """List the notebooks that run."""
    from submarine_jobs import display

    session = frontend.session(frontend.config({"profile": profile, "backend": backend}))
    records = [record for record in session.jobs(MOST) if is_notebook(record)]
    shown = [record for record in records if everything or not record.state.ended]
    if not shown:
        ended = " `submarine notebook list --all` shows former ones." if records else ""
        return Outcome(f"No notebook runs; `submarine notebook start` starts one.{ended}", value=[])
    table = display.table(shown)
    return Outcome(table.text, table.html, [record.to_json() for record in shown])


@notebook.command("show", cls=Verb, example=("notebook show lab-notebook",))
@click.argument("job", required=False, shell_complete=complete_jobs)
@PLACE
@click.pass_obj
def show(
    frontend: Frontend, /, job: str | None, profile: str | None, backend: str | None
) -> Outcome:
    """Show a notebook's job: state, reason, times, where it is, end of its log."""
    from submarine_jobs import display

    found, _ = find_notebook(frontend, job, profile, backend)
    view = found.view()
    return Outcome(
        display.text(view, command=frontend.command), display.html(view), view.record.to_json()
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
    frontend: Frontend,
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
    found, record = find_notebook(frontend, job, profile, backend)
    address = address_of(found, record)
    if not through:
        if port:
            raise UsageError("--port goes with --forward.", "Write --forward --port 8888.")
        return told(found, address, frontend)
    if frontend.kind != "cli":
        raise UsageError("--forward serves until Ctrl-C.", "Use it in a terminal.")
    if not 0 <= port < 1 << 16:
        raise UsageError("--port must be a number from 0 to 65535.")

    def tell(base: str) -> None:
        frontend.say(way_in(address, base))
        frontend.say("Ctrl-C ends the forwarding, not the notebook.")

    return Outcome(forward(found, port, tell), job=found)
