"""Put together what a backend is handed: orders for every process of a job, its environments.

Uploads nothing but Python environments, which are the same for many jobs; ``submit`` does the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from submarine_jobs.access import JobDirectory
from submarine_jobs.backends import Plan, Submission
from submarine_jobs.environments import Progress, provide
from submarine_jobs.inputs import Reached
from submarine_jobs.model import JobSpec, parse_python_env
from submarine_jobs.storage import Storage
from submarine_jobs.submit.agent_configuration import agent_orders
from submarine_jobs.submit.coordinator_configuration import coordinator_orders
from submarine_runtime.protocol.layout import RUNTIME_CACHE
from submarine_runtime.protocol.record import JobRecord


def make_submission(
    spec: JobSpec,
    plan: Plan,
    directory: JobDirectory,
    record: JobRecord,
    *,
    intent: str,
    python: str,
    runtime_zip: str,
    reached: Reached,
    environments: dict[str, str],
    hdfs_wait: float | None = None,
    on_step: Callable[[str], None] | None = None,
) -> Submission:
    """The submission of a job whose directory is complete up to its intent.

    Parameters
    ----------
    hdfs_wait
        Seconds that the job waits for the file system of its directory; None: the default.
    on_step
        Told what the backend does with it.
    """
    agents = {
        role.name: agent_orders(spec, directory, record, intent, python, role, reached)
        for role in spec.roles
    }
    coordinator = None
    if spec.distributed:
        path, job = reached.checkpoint_path, reached.restore_from
        coordinator = coordinator_orders(spec, directory, record, intent, path, job)
    if hdfs_wait is not None:
        for agent in agents.values():
            agent.save_grace = hdfs_wait
        if coordinator is not None:
            coordinator.save_grace = hdfs_wait
    return Submission(
        spec=spec,
        plan=plan,
        storage=directory.storage,
        job_dir=directory.path,
        agent=agents[spec.roles[0].name],
        runtime_zip=runtime_zip,
        coordinator=coordinator,
        agents=agents if spec.distributed else {},
        environments=environments,
        on_step=on_step or (lambda step: None),
    )


def provide_environments(
    spec: JobSpec, storage: Storage, root: str, state_dir: Path, progress: Progress | None = None
) -> dict[str, str]:
    """Role -> URL of its packed Python environment, for the roles that bring one along.

    Parameters
    ----------
    progress
        Told how far the packing and the uploading are; see ``environments.provide``.

    Raises
    ------
    UsageError
        If an archive is not there, or this kernel's environment cannot be packed.
    """
    if spec.backend == "local":  # its processes see this machine's own environment
        return {}
    found: dict[str, str] = {}
    urls: dict[str, str] = {}
    for role in spec.roles:
        text = role.python_env or spec.python_env
        env = parse_python_env(text)
        if not env.packed:
            continue
        if text not in urls:
            heard = progress or (lambda what, done, total: None)
            provided = provide(env, storage, f"{root}/{RUNTIME_CACHE}", state_dir, heard)
            urls[text] = provided.url if provided else ""
        found[role.name] = urls[text]
    return found
