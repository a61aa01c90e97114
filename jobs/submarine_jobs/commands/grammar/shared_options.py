"""Options and arguments of several verbs, with their completion.

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
from submarine_jobs.config import Config, backend_names, check_backend_name, make_private
from submarine_jobs.frontends import Frontend
from submarine_jobs.model import parse_duration
from submarine_runtime.files import replace_file

QUEUES_FILE = "queues.json"
QUEUES_SECONDS = 3600.0
_MAX_JOBS = 50
_MAX_QUEUES = 500
_MAX_FILES = 300
PROGRAMS = (".py", ".ipynb")


def profile_option(command: Callback) -> Callback:
    """Add ``--profile NAME``: the profile of a cluster."""
    return option(
        "--profile",
        metavar="NAME",
        heading="Cluster",
        help="Cluster profile of submarine.toml, or minicluster.",
        shell_complete=complete_profiles,
    )(command)


def backend_option(command: Callback) -> Callback:
    """Add ``--backend NAME``."""
    return option(
        "--backend",
        type=ParsedType("backend", check_backend_name),
        metavar="NAME",
        heading="Cluster",
        help="Where jobs run: yarn (a cluster), local (this machine), or another installed one.",
        shell_complete=complete_backends,
    )(command)


def program_argument(command: Callback) -> Callback:
    """Add the argument of ``run``: a file, or a job name."""
    metavar = "[NAME | FILE.py | FILE.ipynb]"
    return click.argument(
        "target", metavar=metavar, required=False, shell_complete=complete_programs
    )(command)


def job_argument(command: Callback) -> Callback:
    """Add the argument JOB: an id, its unique beginning, a name (the newest), or ``last``."""
    return click.argument("job", metavar="JOB", shell_complete=complete_jobs)(command)


def jobs_argument(command: Callback) -> Callback:
    """Add an argument for one or more jobs."""
    return click.argument(
        "jobs", metavar="JOB...", nargs=-1, required=True, shell_complete=complete_jobs
    )(command)


def duration_option(*names: str, **attrs: Any) -> Callable[[Callback], Callback]:
    """Return a decorator that adds an option with a duration as value."""
    return option(*names, type=ParsedType("time", parse_duration), metavar="TIME", **attrs)


def parameters_option(help: str, heading: str = "Options") -> Callable[[Callback], Callback]:
    """Return a decorator for ``-p NAME VALUE``: parameters of a notebook or workflow."""
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
    """Complete ids of this machine's newest jobs, then their names, then ``last``."""
    session = _frontend(ctx).session(_config(ctx))
    known = session.store.newest(_MAX_JOBS)
    words = [job.job_id for job in known] + [job.name for job in known] + ["last"]
    helps = {job.job_id: f"{job.name} {job.state}" for job in known}
    return [
        CompletionItem(word, help=helps.get(word))
        for word in dict.fromkeys(words)
        if word.startswith(incomplete) and word.isprintable()
    ]


def complete_backends(
    _ctx: click.Context, _param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete names of the installed backends."""
    return [CompletionItem(name) for name in backend_names() if name.startswith(incomplete)]


def complete_profiles(
    ctx: click.Context, _param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete names of the profiles in the configuration files."""
    names = _frontend(ctx).read_config({}).profiles
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def complete_queues(
    ctx: click.Context, _param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete queues from the cache, which is valid for one hour."""
    config = _config(ctx)
    names = read_queues(config)
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def complete_programs(
    _ctx: click.Context, _param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete Python files, notebooks and directories, with a maximum number."""
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
    """Return the cached queues of this profile; empty if there are none or they are too old."""
    try:
        data = json.loads(_queues_path(config).read_bytes())
        fresh = (time.time() if now is None else now) - float(data["time"]) < QUEUES_SECONDS
        return [str(name) for name in data["queues"][:_MAX_QUEUES]] if fresh else []
    except (OSError, ValueError, KeyError, TypeError):
        return []


def cache_queues(config: Config, queues: list[str]) -> None:
    """Write the queues of a cluster to the cache for completion; ignore errors."""
    if not queues:
        return
    path = _queues_path(config)
    try:
        make_private(path.parent)
        content = {"time": time.time(), "queues": queues[:_MAX_QUEUES]}
        replace_file(path, json.dumps(content).encode())
    except OSError:
        pass


def _queues_path(config: Config) -> Path:
    return config.profile.state_dir / "completion" / f"{config.profile.name}-{QUEUES_FILE}"


def _frontend(ctx: click.Context) -> Frontend:
    frontend = ctx.find_object(Frontend)
    return frontend if frontend is not None else Frontend()


def _config(ctx: click.Context) -> Config:
    """Return the configuration for the options typed so far."""
    typed: Mapping[str, Any] = ctx.params
    return _frontend(ctx).read_config(
        {"profile": typed.get("profile"), "backend": typed.get("backend")}
    )
