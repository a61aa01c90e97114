"""Submit the job of a notebook server: validation, specification and program.

The program of the job is the package ``container``.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from importlib import resources, util
from pathlib import Path
from typing import TYPE_CHECKING

from submarine_jobs.commands.grammar import confirm_foreign
from submarine_jobs.errors import RefusedError, UsageError, no_cluster
from submarine_jobs.frontends import Frontend, SubmitProgress
from submarine_jobs.model import NOTEBOOK_ROLE, parse_python_env
from submarine_jobs.options import RoleOptions, RunOptions, spec_from_options
from submarine_jobs.program import Bundle
from submarine_jobs.submit import readable_secret_files
from submarine_kernel.notebook_server.access import LINKS
from submarine_runtime.protocol import SourceMap
from submarine_runtime.translation import _

if TYPE_CHECKING:
    from submarine_jobs.client import Job, Session
    from submarine_jobs.model import Profile

_PACKAGE = "submarine_notebook"
#: The module of the runtime that is shipped with the program.
_SHARED = "connection_limit.py"
_MAIN = f"from {_PACKAGE}.main import main\n\nmain()\n"
#: Minimum memory of each application, in MiB.
MIN_MEMORY = {"lab": 512, "zeppelin": 1024}
DEFAULT_IDLE = 2 * 3600.0


@dataclass(frozen=True)
class NotebookRequest:
    """The options of ``notebook start``.

    Parameters
    ----------
    options
        Options of any job: name, size, queue, environment, data.
    idle
        Seconds without use after which the application ends; 0 for no limit.
    previous
        Job id of an earlier notebook server. Its notebooks are available at the start.
    """

    app: str
    options: RunOptions = field(default_factory=RunOptions)
    idle: float = DEFAULT_IDLE
    zeppelin_home: str = ""
    previous: str | None = None


def submit_notebook(request: NotebookRequest, frontend: Frontend) -> Job:
    """Submit the job.

    Raises
    ------
    UsageError
        If the request is invalid.
    NoClusterError, ClusterError, RefusedError
        If there is no cluster, it does not answer, or it rejects the job.
    """
    options = request.options
    config = frontend.config(options.config_options)
    if config.profile.backend is None:
        raise no_cluster()
    session = frontend.session(config)
    if request.previous is not None:
        previous = notebook_job(session, request.previous)
        why = _("its notebooks may run their code as you")
        if not confirm_foreign(
            previous, frontend, "Use", why, yes=False, option="", runs_code=True
        ):
            raise RefusedError(_("Nothing was submitted."))
        options = replace(options, resume_from=previous.id)
    label, page = LINKS[request.app]
    options = replace(
        options,
        name=options.name or f"{request.app}-notebook",
        framework="any",
        roles=(RoleOptions(NOTEBOOK_ROLE, 1),),
        args=_arguments(request),
        # Port 0 stands for the port that is reserved for the task.
        quicklinks={label: f"https://{NOTEBOOK_ROLE}-0:0{page}", **options.quicklinks},
    )
    _validate(request, options, config.profile)
    bundle = program()
    spec = spec_from_options(options, config.profile, bundle)
    backend = session.backend()
    backend.prepare()
    plan = backend.plan(spec)
    if plan.errors:
        raise RefusedError(" ".join(plan.errors), _("Nothing was submitted."))
    for warning in plan.warnings:
        frontend.say(_("warning: {warning}").format(warning=warning))
    for text in readable_secret_files(spec):
        frontend.say(_("warning: {warning}").format(warning=text))
    with SubmitProgress(frontend) as line:
        return session.submit(spec, bundle, None, plan, line.show)


def notebook_job(session: Session, text: str) -> Job:
    """Return the notebook server with this id or name.

    Raises
    ------
    UsageError
        If the job is not a notebook server.
    """
    job = session.job(text)
    if NOTEBOOK_ROLE not in {name.partition(":")[0] for name in job.task_names}:
        raise UsageError(
            _("{id} was not started by `submarine notebook start`.").format(id=job.id),
            _("`submarine notebook list` shows the notebook servers."),
        )
    return job


def program() -> Bundle:
    """Build the program of the job: the package ``container``, and a main module."""
    files = {"main.py": _MAIN.encode()}
    for item in resources.files("submarine_kernel.notebook_server.container").iterdir():
        if item.name.endswith(".py"):
            files[f"{_PACKAGE}/{item.name}"] = item.read_bytes()
    # The program cannot import submarine_runtime in the container.
    shared = resources.files("submarine_runtime.network") / _SHARED
    files[f"{_PACKAGE}/{_SHARED}"] = shared.read_bytes()
    return Bundle("main.py", files, SourceMap({}))


def _arguments(request: NotebookRequest) -> tuple[str, ...]:
    words = ["--app", request.app, "--idle", f"{request.idle:g}"]
    if request.zeppelin_home:
        words += ["--zeppelin-home", request.zeppelin_home]
    return tuple(words)


def _validate(request: NotebookRequest, options: RunOptions, profile: Profile) -> None:
    minimum = MIN_MEMORY[request.app]
    if options.memory is not None and options.memory < minimum:
        raise UsageError(
            _("--memory: {memory} MiB are too few for {links}.").format(
                memory=options.memory, links=LINKS[request.app][0]
            ),
            _("It needs at least {minimum}M, in addition to the memory of the notebooks.").format(
                minimum=minimum
            ),
        )
    if request.app == "lab":
        if request.zeppelin_home:
            raise UsageError(_("--zeppelin-home needs --app zeppelin."), _("Omit it."))
        _validate_lab(options, profile)
    elif not request.zeppelin_home and "ZEPPELIN_HOME" not in options.env:
        raise UsageError(
            _("The directory of Zeppelin is not known."),
            _(
                "Name its installation on the nodes with --zeppelin-home /opt/zeppelin, or "
                "copy one to the container: --archive zeppelin.tgz:zeppelin --zeppelin-home "
                "zeppelin."
            ),
        )


def _validate_lab(options: RunOptions, profile: Profile) -> None:
    """Reject an environment of this machine without JupyterLab; others cannot be checked here."""
    env = parse_python_env(options.python_env or profile.python_env)
    fix = _("Install it (pip install jupyterlab), or name another environment with --python-env.")
    if env.kind in ("host", "auto") and Path(profile.python) != Path(sys.executable):
        return
    if env.kind in ("host", "auto") and util.find_spec("jupyterlab") is None:
        raise UsageError(_("There is no JupyterLab in this Python environment."), fix)
    if env.kind == "path" and Path(env.value).is_dir() and not _has_lab(Path(env.value)):
        raise UsageError(_("There is no JupyterLab in {env}.").format(env=env.value), fix)


def _has_lab(environment: Path) -> bool:
    return any(environment.glob("lib/python3*/site-packages/jupyterlab/__init__.py"))
