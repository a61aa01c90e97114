"""``tensorboard``: show TensorBoard over the event files of one or more jobs.

In a notebook, the output embeds the TensorBoard of the Jupyter server. In a terminal, the command
runs TensorBoard until Ctrl-C.
"""

from __future__ import annotations

import time
from typing import Any

import click

from submarine_jobs.client import Job
from submarine_jobs.commands.grammar import (
    AS_JSON,
    Verb,
    backend_option,
    jobs_argument,
    option,
    profile_option,
    show_foreign_owner,
)
from submarine_jobs.config import server_url, tensorboard_path
from submarine_jobs.errors import UsageError
from submarine_jobs.frontends import CLUSTER, SUCCESS, Frontend, Outcome
from submarine_jobs.tensorboards import TensorBoardInstance
from submarine_jobs.text import escape_html, escape_html_line
from submarine_runtime.translation import _

MIME_TYPE = "application/vnd.submarine.tensorboard.v1+json"
MAX_JOBS = 20
_POLL_SECONDS = 1.0


@click.command(
    "tensorboard",
    cls=Verb,
    example=("tensorboard last", "tensorboard digits-20261120-7f3a digits-20261121-00ff"),
)
@jobs_argument
@option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    metavar="N",
    heading="Where",
    help="Port of this machine, in a terminal [any that is free].",
)
@profile_option
@backend_option
@click.pass_context
def tensorboard(
    ctx: click.Context,
    /,
    jobs: tuple[str, ...],
    port: int,
    profile: str | None,
    backend: str | None,
) -> Outcome:
    """Show TensorBoard of jobs, running or ended; several of them in one, to compare.

    In a notebook it is an output and a tab of JupyterLab. In a terminal it runs until Ctrl-C and
    its address is printed; only this machine reaches it.
    """
    frontend: Frontend = ctx.obj
    session = frontend.session(frontend.config({"profile": profile, "backend": backend}))
    found = list({job.id: job for job in map(session.job, jobs)}.values())
    for job in found:
        show_foreign_owner(job, frontend)
    if len(found) > MAX_JOBS:
        raise UsageError(
            _("A TensorBoard shows at most {max_jobs} jobs, not {count}.").format(
                max_jobs=MAX_JOBS, count=len(found)
            ),
            _("Name fewer."),
        )
    ids = [job.id for job in found]
    if frontend.kind != "cli" or ctx.meta.get(AS_JSON):
        return _server_outcome(ids)
    return _serve(frontend, found, port)


def _server_outcome(ids: list[str]) -> Outcome:
    """Return the MIME output that JupyterLab renders, and text for other front ends."""
    path, server = tensorboard_path(ids), server_url()
    url = f"{server}{path}" if server else None
    arguments = " ".join(ids)
    place = "{url}" if url else _("{url} below the address of JupyterLab")
    words = _(
        "TensorBoard of {ids}: {place}. Where the server extension is not enabled, run {command} "
        "in a terminal."
    )
    text = words.format(
        ids=", ".join(ids),
        place=place.format(url=url or path),
        command=f"`submarine tensorboard {arguments}`",
    )
    shown = escape_html(url or path, 2000)
    link = f'<a href="{shown}" target="_blank" rel="noopener">{shown}</a>' if url else shown
    sentence = words.format(
        ids=escape_html_line(", ".join(ids), 2000),
        place=place.format(url=link),
        command=f"<code>submarine tensorboard {escape_html_line(arguments, 2000)}</code>",
    )
    html = f"<p>{sentence}</p>"
    value: dict[str, Any] = {"job_ids": ids, "path": path, "url": url}
    return Outcome(text, html, value, mime={MIME_TYPE: {"version": 1, "jobs": ids}})


def _serve(frontend: Frontend, jobs: list[Job], port: int) -> Outcome:
    """Run TensorBoard until it ends or is interrupted."""
    board = TensorBoardInstance(jobs, jobs[0].session.profile.state_dir, on_socket=False, port=port)
    said: set[str] = set()
    try:
        board.start()
        frontend.say(_("TensorBoard: {url}  (Ctrl-C ends it)").format(url=board.process.url))
        while board.process.alive:
            for notice in board.notices():
                if notice not in said and len(said) < MAX_JOBS * 3:
                    said.add(notice)
                    frontend.say(notice)
            time.sleep(_POLL_SECONDS)
        why = board.process.last_log_line() or _("it wrote no message")
        return Outcome(_("TensorBoard has ended: {why}").format(why=why), exit_code=CLUSTER)
    except KeyboardInterrupt:
        return Outcome(_("TensorBoard has ended."), exit_code=SUCCESS)
    finally:
        board.close()
