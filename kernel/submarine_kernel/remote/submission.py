"""From what a kernelspec asks for to a job whose container can be talked to: submit, wait, find.

Blocks and belongs into a thread, but for ``place``. Does not talk to the kernel (``owner``).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from submarine_jobs.client import foreign_owner
from submarine_jobs.concurrency import in_thread
from submarine_jobs.display import next_step, sentence
from submarine_jobs.errors import SubmarineError, UsageError
from submarine_kernel.remote.keeper_client import KernelGoneError
from submarine_kernel.remote.pending_starts import over
from submarine_runtime.protocol.states import State

if TYPE_CHECKING:
    from submarine_jobs.access import AgentAddress
    from submarine_jobs.client import Job, Session
    from submarine_jobs.environments import Progress
    from submarine_jobs.model import JobSpec, Profile
    from submarine_jobs.options import RunOptions
    from submarine_jobs.program import Bundle

#: Options of ``run`` that a kernel may be given.
TAKEN = (
    *("memory", "vcores", "gpu", "queue", "python_env", "backend", "profile", "priority"),
    *("docker_image", "node_label", "node", "rack", "avoid_node", "network_interface"),
    *("env", "conf", "input", "localization", "file", "archive"),
)
_PACKAGE = "submarine_keeper"
_MAIN = f"from {_PACKAGE}.main import main\n\nmain()\n"
#: Seconds between two looks whether the container is there: first, and at most; and at the job.
LOOK, LAST_LOOK, VIEW = 0.15, 2.0, 2.0


@dataclass(frozen=True)
class Asked:
    """A kernel that somebody wants.

    Parameters
    ----------
    name
        Of the kernelspec.
    run
        Options of ``run``: memory, gpu, queue and so on, see ``TAKEN``.
    idle
        Seconds that it stays without an owner.
    patience
        Seconds to wait for its container.
    env
        Further variables for the kernel.
    notebook
        The document that it is for; empty: none.
    """

    name: str
    run: Mapping[str, Any]
    idle: float = 3600.0
    patience: float = 1800.0
    env: Mapping[str, str] = field(default_factory=dict)
    notebook: str = ""


def run_options(asked: Asked) -> RunOptions:
    """The options that a kernelspec's words mean.

    Raises
    ------
    UsageError
        If ``run`` does not know one, or a kernel cannot have it.
    """
    from submarine_jobs.commands.run import parse_run
    from submarine_jobs.model import KERNEL_ROLE
    from submarine_jobs.options import RoleOptions
    from submarine_jobs.python_api import words_of

    for key in asked.run:
        if key not in TAKEN:
            raise UsageError(
                f"A kernel in a container takes no option {str(key)[:40]!r}.",
                f"It takes {', '.join(TAKEN)}.",
            )
    options = parse_run(["--name", f"kernel-{asked.name}"[:100], *words_of(asked.run, {})])
    return replace(
        options,
        framework="any",
        roles=(RoleOptions(KERNEL_ROLE, 1),),
        # Where there is a coordinator it would start a kernel that ended, as an empty one.
        max_restarts=0,
        env={**options.env, **asked.env},
    )


def program() -> Bundle:
    """What travels: ``container`` as a package, and a program that starts it."""
    from submarine_jobs.program import Bundle
    from submarine_runtime.protocol.sourcemap import SourceMap

    sources = {"main.py": _MAIN.encode()}
    for item in files("submarine_kernel.remote.container").iterdir():
        if item.name.endswith(".py"):
            sources[f"{_PACKAGE}/{item.name}"] = item.read_bytes()
    return Bundle("main.py", sources, SourceMap({}))


def session_of(asked: Asked) -> Session:
    """The session of the profile that the kernelspec names."""
    from submarine_jobs.client import Session
    from submarine_jobs.config import load_config
    from submarine_jobs.errors import no_cluster

    config = load_config(run_options(asked).config_options)
    if config.profile.backend is None:
        raise no_cluster()
    return Session(config.profile)


def spec_of_kernel(profile: Profile, asked: Asked, bundle: Bundle) -> JobSpec:
    """The job that a kernel is."""
    from submarine_jobs.options import spec_from_options

    options = replace(run_options(asked), args=("--idle", f"{asked.idle:g}"))
    return spec_from_options(options, profile, bundle, notebook=asked.notebook or None)


def submit_kernel(session: Session, asked: Asked, progress: Progress | None = None) -> Job:
    """Submit the job of a kernel.

    Parameters
    ----------
    progress
        Told how far an environment that comes along is.

    Raises
    ------
    SubmarineError
        If the request is wrong, or the cluster refuses or does not answer.
    """
    bundle = program()
    spec = spec_of_kernel(session.profile, asked, bundle)
    session.backend().prepare()
    return session.submit(spec, bundle, progress=progress)


def orphans(session: Session, asked: Asked) -> list[Job]:
    """Running kernels of the same kernelspec and notebook, newest first; they may have owners."""
    if not asked.notebook:
        return []
    name = run_options(asked).name
    rows = [row for row in session.store.going_on() if row.name == name][:20]
    rows = [row for row in rows if row.state in (State.RUNNING, State.PENDING, State.STARTING)]
    origins = session.store.origins([row.job_id for row in rows])
    found = []
    for row in rows:
        origin = origins.get(row.job_id)
        if origin is not None and origin.notebook == asked.notebook:
            with contextlib.suppress(SubmarineError):
                job = session.job(row.job_id)
                if not foreign_owner(job):  # code typed here must not run in their kernel
                    found.append(job)
    return found


async def place(job: Job, patience: float, say: Callable[[str], None]) -> AgentAddress:
    """Wait until the job's container answers on its port.

    Parameters
    ----------
    say
        Called with each new sentence about what it waits for.

    Raises
    ------
    KernelGoneError
        If the job ends first, or has not begun after ``patience`` seconds; it is cancelled then.
    """
    loop = asyncio.get_running_loop()
    began, pause, next_view, told = loop.time(), LOOK, loop.time() + VIEW, ""
    # There the port answers before the kernel is started: an agent waits for a GPU, say.
    spec = await in_thread(job.directory.spec)
    early = spec.distributed or spec.backend == "local"
    while True:
        with contextlib.suppress(SubmarineError, OSError, ValueError, KeyError):
            address = await in_thread(lambda: _address(job, early))
            if address is not None:
                return address
        if over():
            await in_thread(lambda: give_up(job, "its server was stopped"))
            raise KernelGoneError("The server was stopped while the kernel waited.")
        now = loop.time()
        if now >= next_view:
            words = await in_thread(lambda: _situation(job))
            next_view = loop.time() + max(VIEW, pause * 4)
            if words and words != told:
                told = words
                say(words)
        if now - began > patience:
            await in_thread(lambda: give_up(job, "its container did not come in time"))
            waited = f" It waited: {told.rstrip('.')}." if told else ""
            raise KernelGoneError(
                f"The kernel has got no container in {patience:g} s.{waited} Its job {job.id} is "
                "cancelled.",
                "Ask for less, name another queue, or wait longer: `submarine kernel install "
                "--start-timeout`.",
            )
        await asyncio.sleep(pause)
        if now - began > 20:
            pause = min(pause * 1.3, LAST_LOOK)


def _address(job: Job, early: bool) -> AgentAddress | None:
    """Where the kernel is reached; ``early``: its port alone does not say that it runs."""
    address = job.directory.address()
    if early and address is not None and job.record().state is not State.RUNNING:
        return None
    return address


async def explain(job: Job, seconds: float = 20.0) -> None:
    """Raise KernelGoneError with the reason if the job has ended, or ends within ``seconds``."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while loop.time() < deadline:
        await in_thread(lambda: _situation(job))
        await asyncio.sleep(LOOK)


def _situation(job: Job) -> str:
    """What the job waits for; raises when it has ended."""
    try:
        view = job.view()
    except SubmarineError as error:
        return f"The cluster does not answer: {error.message}"
    if view.record.state.ended:
        said, last = sentence(view), view.tail.strip().splitlines()[-3:]
        more = " ".join(line.strip() for line in last if line.strip() not in said)[:600]
        words = f"The job {job.id} of the kernel has ended before it could be used. {said} {more}"
        raise KernelGoneError(words.strip(), next_step(view))
    return sentence(view) if view.record.state is not State.RUNNING else ""


def give_up(job: Job, why: str) -> None:
    """End the job; no matter whether anybody hears it now: the wish is in its directory."""
    with contextlib.suppress(SubmarineError, OSError):
        job.cancel(why)
