"""Submit programs of one cell as jobs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from submarine_jobs.client import Job, Session
from submarine_jobs.model import JobSpec, Resources, Role
from submarine_jobs.program import Bundle, Cell, build_bundle

#: Called with the source and the name of a program, and fields of the spec; see `make_job`.
Submit = Callable[..., Job]


def make_job(
    source: str,
    name: str = "test",
    *,
    backend: str = "local",
    role: str = "worker",
    instances: int = 1,
    memory: int = 256,
    gpus: int = 0,
    command: str | None = None,
    processes: int = 0,
    roles: Sequence[Role] = (),
    **fields: Any,
) -> tuple[JobSpec, Bundle]:
    """Return the spec and the bundle of a program that consists of one cell.

    Parameters
    ----------
    role, instances, memory, gpus, command, processes
        The only role, unless ``roles`` are given.
    fields
        Other fields of the spec.
    """
    cell = Cell("cell-1", source, label="[3]", execution_count=3)
    bundle = build_bundle([cell])
    size = Resources(memory=memory, gpus=gpus)
    only = Role(role, instances, size, command=command, processes=processes)
    values = {"program": bundle.program, "python": sys.executable, "bundle_digest": bundle.digest}
    spec = JobSpec(name, backend, roles=tuple(roles) or (only,), **{**values, **fields})
    return spec, bundle


@contextmanager
def submitting(session: Session, **defaults: Any) -> Iterator[Submit]:
    """Give a function that submits a program; at the end, cancel the jobs that still run.

    Parameters
    ----------
    defaults
        Arguments of `make_job` for each job.
    """
    jobs: list[Job] = []

    def submit(source: str, name: str = "test", **arguments: Any) -> Job:
        job = session.submit(*make_job(source, name, **{**defaults, **arguments}))
        jobs.append(job)
        return job

    try:
        yield submit
    finally:
        for job in jobs:
            if not job.record().state.ended:
                job.cancel("the test is over")


def cancel_unfinished(session: Session) -> None:
    """Cancel the jobs of a session that still run."""
    for row in session.store.unfinished():
        job = session.job(row.job_id)
        if not job.record().state.ended:
            job.cancel("the test is over")
