"""Options and arguments that several verbs have, and what Tab offers for them.

Completion reads this machine's job store and small cache files only, never the network.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from submarine_jobs.commands.grammar.verb import Callback, ParsedType, option
from submarine_jobs.config import BACKENDS, Config, make_private
from submarine_jobs.frontends import Frontend
from submarine_jobs.model import parse_duration

QUEUES_FILE = "queues.json"
QUEUES_SECONDS = 3600.0
_MAX_JOBS = 50
_MAX_QUEUES = 500
_MAX_FILES = 300
PROGRAMS = (".py", ".ipynb")


def profile_option(command: Callback) -> Callback:
    """``--profile NAME``: the cluster to talk to."""
    return option(
        "--profile",
        metavar="NAME",
        heading="Cluster",
        help="Cluster profile of submarine.toml, or minicluster.",
        shell_complete=complete_profiles,
    )(command)


def backend_option(command: Callback) -> Callback:
    """``--backend yarn|local``."""
    return option(
        "--backend",
        type=click.Choice(BACKENDS),
        heading="Cluster",
        help="Where jobs run: a YARN cluster, or processes on this machine.",
    )(command)


def program_argument(command: Callback) -> Callback:
    """What to run: a file, or the name of a job that runs something else."""
    metavar = "[NAME | FILE.py | FILE.ipynb]"
    return click.argument(
        "target", metavar=metavar, required=False, shell_complete=complete_programs
    )(command)


def job_argument(command: Callback) -> Callback:
    """One job: id, unique beginning of one, name (the newest), or ``last``."""
    return click.argument("job", metavar="JOB", shell_complete=complete_jobs)(command)


def jobs_argument(command: Callback) -> Callback:
    """One job or more."""
    return click.argument(
        "jobs", metavar="JOB...", nargs=-1, required=True, shell_complete=complete_jobs
    )(command)


def duration_option(*names: str, **attrs: Any) -> Callable[[Callback], Callback]:
    """An option whose value is a duration."""
    return option(*names, type=ParsedType("time", parse_duration), metavar="TIME", **attrs)


def parameters_option(help: str, heading: str = "Options") -> Callable[[Callback], Callback]:
    """``-p NAME VALUE``, as papermill has it: parameters of a notebook or of a workflow."""
    return option(
        "-p",
        "--parameters",
        "parameters",
        nargs=2,
        multiple=True,
        metavar="NAME VALUE",
        heading=heading,
        help=help,
    )


def complete_jobs(
    ctx: click.Context, _param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Ids of this machine's newest jobs, then their names, then ``last``."""
    session = _frontend(ctx).session(_config(ctx))
    known = session.store.newest(_MAX_JOBS)
    words = [job.job_id for job in known] + [job.name for job in known] + ["last"]
    helps = {job.job_id: f"{job.name} {job.state}" for job in known}
    return [
        CompletionItem(word, help=helps.get(word))
        for word in dict.fromkeys(words)
        if word.startswith(incomplete) and word.isprintable()
    ]


def complete_profiles(
    ctx: click.Context, _param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Names of the profiles in the configuration files."""
    names = _frontend(ctx).read_config({}).profiles
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def complete_queues(
    ctx: click.Context, _param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Queues as the cluster named them within the last hour."""
    config = _config(ctx)
    names = read_queues(config)
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def complete_programs(
    _ctx: click.Context, _param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Python files, notebooks and directories, at most some hundreds."""
    folder, slash, start = incomplete.rpartition("/")
    try:
        with os.scandir(folder or slash or ".") as entries:
            found = [e for e in entries if e.name.startswith(start) and e.name.isprintable()]
    except OSError:
        return []
    words = [
        f"{folder}{slash}{entry.name}{'/' if entry.is_dir() else ''}"
        for entry in sorted(found, key=lambda entry: entry.name)
        if (entry.name.endswith(PROGRAMS) or entry.is_dir())
        and (start or not entry.name.startswith("."))
    ]
    return [CompletionItem(word) for word in words[:_MAX_FILES]]


def read_queues(config: Config, now: float | None = None) -> list[str]:
    """Names from the queue cache of this profile; empty when there is none or it is old."""
    try:
        data = json.loads(_queues_path(config).read_bytes())
        fresh = (time.time() if now is None else now) - float(data["time"]) < QUEUES_SECONDS
        return [str(name) for name in data["queues"][:_MAX_QUEUES]] if fresh else []
    except (OSError, ValueError, KeyError, TypeError):
        return []


def remember_queues(config: Config, queues: list[str]) -> None:
    """Keep the names of a cluster's queues for Tab; a failure costs nothing but the completion."""
    if not queues:
        return
    path = _queues_path(config)
    try:
        make_private(path.parent)
        temporary = path.with_suffix(".tmp")
        temporary.write_text(json.dumps({"time": time.time(), "queues": queues[:_MAX_QUEUES]}))
        temporary.replace(path)
    except OSError:
        pass


def _queues_path(config: Config) -> Path:
    return config.profile.state_dir / "completion" / f"{config.profile.name}-{QUEUES_FILE}"


def _frontend(ctx: click.Context) -> Frontend:
    frontend = ctx.find_object(Frontend)
    return frontend if frontend is not None else Frontend()


def _config(ctx: click.Context) -> Config:
    """The configuration that the options typed so far ask for."""
    typed: Mapping[str, Any] = ctx.params
    return _frontend(ctx).read_config(
        {"profile": typed.get("profile"), "backend": typed.get("backend")}
    )
