"""Submit the job of a kernel, find running ones, and wait for the container.

All functions block, except the coroutines. ``remote_kernel`` communicates with the kernel.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from submarine_jobs.client import Session, foreign_owner
from submarine_jobs.commands.run import parse_run
from submarine_jobs.concurrency import in_thread
from submarine_jobs.config import load_config
from submarine_jobs.display import next_step, sentence
from submarine_jobs.errors import SubmarineError, UsageError, no_cluster
from submarine_jobs.model import KERNEL_ROLE
from submarine_jobs.options import RoleOptions, spec_from_options
from submarine_jobs.program import Bundle
from submarine_jobs.python_api import to_arguments
from submarine_kernel.remote.pending_starts import stopping
from submarine_kernel.remote.supervisor_client import KernelLostError
from submarine_runtime.protocol import SourceMap, State
from submarine_runtime.translation import _

if TYPE_CHECKING:
    from submarine_jobs.access import AgentAddress
    from submarine_jobs.client import Job
    from submarine_jobs.environments import Progress
    from submarine_jobs.model import JobSpec, Profile
    from submarine_jobs.options import RunOptions

#: Options of ``run`` that a kernelspec may contain.
OPTIONS = (
    *("memory", "vcores", "gpu", "queue", "python_env", "backend", "profile", "priority"),
    *("docker_image", "node_label", "node", "rack", "avoid_node", "network_interface"),
    *("env", "secret", "conf", "input", "localization", "file", "archive", "idle_gpu"),
)
_PACKAGE = "submarine_kernel_supervisor"
_MAIN = f"from {_PACKAGE}.supervisor import main\n\nmain()\n"
#: Seconds between two checks for the container, first and at most; and between two status queries.
POLL, LAST_POLL, VIEW = 0.15, 2.0, 2.0


@dataclass(frozen=True)
class KernelRequest:
    """A kernel that a kernelspec requests.

    Parameters
    ----------
    name
        Name of the kernelspec.
    run
        Options of ``run``: memory, gpu, queue and so on, see ``OPTIONS``.
    idle_timeout
        Seconds for which the container stays without an owner.
    start_timeout
        Seconds to wait for the container.
    env
        Further environment variables of the kernel.
    notebook
        Path of the document; empty if there is none.
    """

    name: str
    run: Mapping[str, Any]
    idle_timeout: float = 3600.0
    start_timeout: float = 1800.0
    env: Mapping[str, str] = field(default_factory=dict)
    notebook: str = ""


def run_options(request: KernelRequest) -> RunOptions:
    """Parse the options of a kernelspec.

    Raises
    ------
    UsageError
        If an option is not in ``OPTIONS``, or ``run`` rejects its value.
    """
    for key in request.run:
        if key not in OPTIONS:
            raise UsageError(
                _("A kernel in a container has no option {key!r}.").format(key=str(key)[:40]),
                _("Its options are {options}.").format(options=", ".join(OPTIONS)),
            )
    options = parse_run(["--name", f"kernel-{request.name}"[:100], *to_arguments(request.run, {})])
    return replace(
        options,
        framework="any",
        roles=(RoleOptions(KERNEL_ROLE, 1),),
        # A coordinator must not restart the kernel: its variables would be lost silently.
        max_restarts=0,
        env={**options.env, **request.env},
    )


def program() -> Bundle:
    """Build the program of the job: the package ``container``, and a main module."""
    sources = {"main.py": _MAIN.encode()}
    for item in files("submarine_kernel.remote.container").iterdir():
        if item.name.endswith(".py"):
            sources[f"{_PACKAGE}/{item.name}"] = item.read_bytes()
    return Bundle("main.py", sources, SourceMap({}))


def session_of(request: KernelRequest) -> Session:
    """Return a session with the profile of the kernelspec."""
    options = run_options(request).config_options
    kernelspec = _("The kernelspec {name}").format(name=request.name)
    config = load_config(options, sources=dict.fromkeys(options, kernelspec))
    if config.profile.backend is None:
        raise no_cluster()
    return Session(config.profile)


def spec_of_kernel(profile: Profile, request: KernelRequest, bundle: Bundle) -> JobSpec:
    """Return the specification of the kernel's job."""
    options = replace(run_options(request), args=("--idle", f"{request.idle_timeout:g}"))
    return spec_from_options(options, profile, bundle, notebook=request.notebook or None)


def submit_kernel(
    session: Session, request: KernelRequest, progress: Progress | None = None
) -> Job:
    """Submit the job of a kernel.

    Parameters
    ----------
    progress
        Called with the progress of packing and uploading an environment.

    Raises
    ------
    SubmarineError
        If the request is invalid, or the cluster rejects it or does not answer.
    """
    bundle = program()
    spec = spec_of_kernel(session.profile, request, bundle)
    session.backend().prepare()
    return session.submit(spec, bundle, progress=progress)


def find_running(session: Session, request: KernelRequest) -> list[Job]:
    """Return running kernels of the same kernelspec and notebook, newest first.

    They may have owners.
    """
    if not request.notebook:
        return []
    name = run_options(request).name
    rows = [row for row in session.store.unfinished() if row.name == name][:20]
    rows = [row for row in rows if row.state in (State.RUNNING, State.PENDING, State.STARTING)]
    origins = session.store.origins([row.job_id for row in rows])
    found = []
    for row in rows:
        origin = origins.get(row.job_id)
        if origin is not None and origin.notebook == request.notebook:
            with contextlib.suppress(SubmarineError):
                job = session.job(row.job_id)
                if not foreign_owner(job):  # Code must not run in another user's kernel.
                    found.append(job)
    return found


async def wait_for_container(
    job: Job,
    timeout: float,
    report: Callable[[str], None],
    stopped: Callable[[], bool] = lambda: False,
) -> AgentAddress:
    """Wait until the job's container answers on its port; return the address.

    Parameters
    ----------
    report
        Called with each new sentence about the reason of the wait.
    stopped
        Whether this start must fail now.

    Raises
    ------
    KernelLostError
        If the job ends, if the start is stopped, or if the job has not started after ``timeout``
        seconds; the job is then cancelled.
    """
    loop = asyncio.get_running_loop()
    began, pause, next_view, reason = loop.time(), POLL, loop.time() + VIEW, ""
    # In these jobs the port answers before the kernel is started, for example while an agent waits
    # for a GPU.
    spec = await in_thread(job.directory.spec)
    early = spec.distributed or spec.backend == "local"
    while True:
        with contextlib.suppress(SubmarineError, OSError, ValueError, KeyError):
            address = await in_thread(lambda: _address(job, early))
            if address is not None:
                return address
        if stopping():
            await in_thread(lambda: cancel_job(job, _("its server was stopped")))
            raise KernelLostError(_("The server was stopped while the kernel waited."))
        if stopped():
            await in_thread(lambda: cancel_job(job, _("its start was stopped")))
            raise KernelLostError(
                _("The start was stopped, and its job {id} is cancelled.").format(id=job.id)
            )
        now = loop.time()
        if now >= next_view:
            words = await in_thread(lambda: _waiting_reason(job))
            next_view = loop.time() + max(VIEW, pause * 4)
            if words and words != reason:
                reason = words
                report(words)
        if now - began > timeout:
            await in_thread(lambda: cancel_job(job, _("its container did not start in time")))
            waited = _(" It waited: {reason}.").format(reason=reason.rstrip(".")) if reason else ""
            raise KernelLostError(
                _(
                    "The kernel got no container in {timeout:g} s.{waited} Its job {id} is "
                    "cancelled."
                ).format(timeout=timeout, waited=waited, id=job.id),
                _(
                    "Request less, use another queue, or wait longer: `submarine kernel "
                    "install --start-timeout`."
                ),
            )
        until = loop.time() + pause
        while loop.time() < until and not stopped():
            await asyncio.sleep(min(POLL, until - loop.time()))
        if now - began > 20:
            pause = min(pause * 1.3, LAST_POLL)


def _address(job: Job, early: bool) -> AgentAddress | None:
    """Return the address of the kernel; if ``early``, only once the job runs."""
    address = job.directory.address()
    if early and address is not None and job.record().state is not State.RUNNING:
        return None
    return address


async def raise_if_ended(job: Job, seconds: float = 20.0) -> None:
    """Raise KernelLostError with the reason if the job has ended, or ends within ``seconds``."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while loop.time() < deadline:
        await in_thread(lambda: _waiting_reason(job))
        await asyncio.sleep(POLL)


def _waiting_reason(job: Job) -> str:
    """Return what the job waits for; raise KernelLostError if it has ended."""
    try:
        view = job.view()
    except SubmarineError as error:
        return _("The cluster does not answer: {message}").format(message=error.message)
    if view.record.state.ended:
        reason, last = sentence(view), view.tail.strip().splitlines()[-3:]
        more = " ".join(line.strip() for line in last if line.strip() not in reason)[:600]
        words = _(
            "The job {id} of the kernel ended before the kernel was ready. {reason} {more}"
        ).format(id=job.id, reason=reason, more=more)
        raise KernelLostError(words.strip(), next_step(view))
    return sentence(view) if view.record.state is not State.RUNNING else ""


def cancel_job(job: Job, why: str) -> None:
    """Cancel the job; errors are ignored, because its directory contains the request."""
    with contextlib.suppress(SubmarineError, OSError):
        job.cancel(why)
