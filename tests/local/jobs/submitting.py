"""Programs of one cell as real local jobs, for tests with a server."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from submarine_jobs.client import Job, Session
from submarine_jobs.model import JobSpec, Resources, Role
from submarine_jobs.program import Cell, build_bundle

Submit = Callable[..., Job]


def submitting(session: Session) -> Iterator[Submit]:
    """Submit a program; whatever still runs in the end is cancelled."""
    jobs: list[Job] = []

    def run(
        source: str,
        name: str = "test",
        instances: int = 1,
        roles: Sequence[Role] = (),
        **changes: Any,
    ) -> Job:
        cell = Cell("cell-1", source, label="[1]", execution_count=1)
        chosen = roles or (Role(instances=instances, resources=Resources(memory=256)),)
        spec = JobSpec(name, "local", roles=tuple(chosen), python=sys.executable, **changes)
        jobs.append(session.submit(spec, build_bundle([cell])))
        return jobs[-1]

    yield run
    for job in jobs:
        if not job.record().state.ended:
            job.cancel()
