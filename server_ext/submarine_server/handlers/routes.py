"""Routes of the REST interface, relative to its base URL, and the objects that they share."""

from __future__ import annotations

from typing import Any

from submarine_server.handlers import cluster, completion, health, job, jobs, logs, program
from submarine_server.service import JobService, Submissions

ROUTES: list[tuple[str, Any]] = [
    *health.ROUTES,
    *jobs.ROUTES,
    *job.ROUTES,
    *program.ROUTES,
    *cluster.ROUTES,
    *completion.ROUTES,
    *logs.ROUTES,
]


def attach(settings: dict[str, Any], service: JobService) -> None:
    """Add the objects that handlers share to the settings of the server."""
    settings[jobs.SUBMISSIONS] = Submissions(service)
