"""From the options of ``notebook start`` to a job: its spec, its program, what is refused before.

The program is what lies in ``container``. Does not wait (``access``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import resources, util
from pathlib import Path
from typing import TYPE_CHECKING

from submarine_jobs.commands.grammar import ask_if_foreign
from submarine_jobs.errors import RefusedError, UsageError, no_cluster
from submarine_jobs.frontends import Frontend, SubmitLine
from submarine_jobs.model import parse_python_env
from submarine_jobs.options import RoleOptions, RunOptions, spec_from_options
from submarine_jobs.program import Bundle
from submarine_kernel.notebook_server import ROLE
from submarine_kernel.notebook_server.container import surroundings
from submarine_runtime.protocol.sourcemap import SourceMap

if TYPE_CHECKING:
    from submarine_jobs.client import Job, Session
    from submarine_jobs.model import Profile

#: Application -> label of its link, path of its page. Port 0: the one reserved for the task.
LINKS = {"lab": ("JupyterLab", "/lab"), "zeppelin": ("Zeppelin", "/")}
_PACKAGE = "submarine_notebook"
#: The module of the runtime that travels with the program.
_SHARED = "connection_limit.py"
_MAIN = f"from {_PACKAGE}.main import main\n\nmain()\n"
#: Smallest memory that each application is of use with, in MiB.
LEAST = {"lab": 512, "zeppelin": 1024}
DEFAULT_IDLE = 2 * 3600.0


@dataclass(frozen=True)
class Wish:
    """What somebody asked for.

    Parameters
    ----------
    options
        What goes for every job: name, size, queue, environment, data.
    idle
        Seconds after which an unused application ends; 0: never.
    previous
        A job whose notebooks it begins with.
    """

    app: str
    options: RunOptions = field(default_factory=RunOptions)
    idle: float = DEFAULT_IDLE
    zeppelin_home: str = ""
    previous: str | None = None


def start(wish: Wish, frontend: Frontend) -> Job:
    """Submit the job.

    Raises
    ------
    UsageError
        If what was asked for cannot work.
    NoClusterError, ClusterError, RefusedError
        If there is no cluster, it does not answer, or it says no.
    """
    options = wish.options
    config = frontend.config(options.config_options)
    if config.profile.backend is None:
        raise no_cluster()
    session = frontend.session(config)
    if wish.previous is not None:
        previous = notebook_job(session, wish.previous)
        why = "its notebooks may run their code as you"
        if not ask_if_foreign(previous, frontend, "Use", why, yes=False, option="", runs_code=True):
            raise RefusedError("Nothing was submitted.")
        options = replace(options, resume=previous.id)
    label, page = LINKS[wish.app]
    options = replace(
        options,
        name=options.name or f"{wish.app}-notebook",
        framework="any",
        roles=(RoleOptions(ROLE, 1),),
        args=_arguments(wish),
        quicklinks={label: f"https://{ROLE}-0:0{page}", **options.quicklinks},
    )
    _check(wish, options, config.profile)
    bundle = program()
    spec = spec_from_options(options, config.profile, bundle)
    backend = session.backend()
    backend.prepare()
    plan = backend.plan(spec)
    if plan.errors:
        raise RefusedError(" ".join(plan.errors), "Nothing was submitted.")
    for warning in plan.warnings:
        frontend.say(f"warning: {warning}")
    with SubmitLine(frontend) as line:
        return session.submit(spec, bundle, None, plan, line.show)


def notebook_job(session: Session, text: str) -> Job:
    """The notebook that ``text`` means.

    Raises
    ------
    UsageError
        If that job is no notebook.
    """
    job = session.job(text)
    if ROLE not in {name.partition(":")[0] for name in job.task_names}:
        raise UsageError(
            f"{job.id} is no notebook of `submarine notebook start`.",
            "`submarine notebook list` shows them.",
        )
    return job


def program() -> Bundle:
    """What travels: ``container`` as a package, and a program that starts it."""
    files = {"main.py": _MAIN.encode()}
    directory = resources.files(surroundings.__package__ or "")
    for item in directory.iterdir():
        if item.name.endswith(".py"):
            files[f"{_PACKAGE}/{item.name}"] = item.read_bytes()
    # The container has no submarine_runtime that the program could import.
    shared = resources.files("submarine_runtime.network") / _SHARED
    files[f"{_PACKAGE}/{_SHARED}"] = shared.read_bytes()
    return Bundle("main.py", files, SourceMap({}))


def _arguments(wish: Wish) -> tuple[str, ...]:
    words = ["--app", wish.app, "--idle", f"{wish.idle:g}"]
    if wish.zeppelin_home:
        words += ["--zeppelin-home", wish.zeppelin_home]
    return tuple(words)


def _check(wish: Wish, options: RunOptions, profile: Profile) -> None:
    least = LEAST[wish.app]
    if options.memory is not None and options.memory < least:
        raise UsageError(
            f"--memory: {options.memory} MiB are too few for {LINKS[wish.app][0]}.",
            f"It needs at least {least}M, and what the notebooks themselves need.",
        )
    if wish.app == "lab":
        if wish.zeppelin_home:
            raise UsageError("--zeppelin-home goes with --app zeppelin.", "Leave it out.")
        _check_lab(options, profile)
    elif not wish.zeppelin_home and "ZEPPELIN_HOME" not in options.env:
        raise UsageError(
            "Nothing says where Zeppelin is.",
            "Name its installation on the nodes with --zeppelin-home /opt/zeppelin, or bring one "
            "along: --archive zeppelin.tgz:zeppelin --zeppelin-home zeppelin.",
        )


def _check_lab(options: RunOptions, profile: Profile) -> None:
    """Refuse an environment of this machine that has no JupyterLab; others are not seen here."""
    env = parse_python_env(options.python_env or profile.python_env)
    fix = "Install it (pip install jupyterlab), or name another environment with --python-env."
    if env.kind in ("host", "auto") and not _packages_here(profile):
        return
    if env.kind in ("host", "auto") and util.find_spec("jupyterlab") is None:
        raise UsageError("There is no JupyterLab in this Python environment.", fix)
    if env.kind == "path" and Path(env.value).is_dir() and not _has_lab(Path(env.value)):
        raise UsageError(f"There is no JupyterLab in {env.value}.", fix)


def _packages_here(profile: Profile) -> bool:
    """Whether the job's interpreter is the one that asks."""
    import sys

    return Path(profile.python) == Path(sys.executable)


def _has_lab(environment: Path) -> bool:
    return any(environment.glob("lib/python3*/site-packages/jupyterlab/__init__.py"))


_LINK = re.compile(r"https://(\[[0-9a-fA-F:]+\]|[A-Za-z0-9._-]+):(\d{1,5})(/[A-Za-z0-9._/-]*)")


@dataclass(frozen=True)
class Place:
    """Where an application listens: taken from a job's link, and nothing else of it."""

    label: str
    host: str
    port: int
    page: str

    @property
    def url(self) -> str:
        """Its page, without what lets a person in."""
        return f"https://{self.host}:{self.port}{self.page}"


def place_in(links: Mapping[str, str]) -> Place | None:
    """The application's place among a job's links; None while it is not known."""
    for label, _ in LINKS.values():
        match = _LINK.fullmatch(links.get(label, ""))
        if match is not None and 0 < int(match[2]) < 1 << 16:
            return Place(label, match[1], int(match[2]), match[3])
    return None
