"""Routes of the REST interface, relative to its base URL."""

from __future__ import annotations

from typing import Any

from submarine_server.handlers import cluster, completion, health, job, jobs, logs, program

ROUTES: list[tuple[str, Any]] = [
    *health.ROUTES,
    *jobs.ROUTES,
    *job.ROUTES,
    *program.ROUTES,
    *cluster.ROUTES,
    *completion.ROUTES,
    *logs.ROUTES,
]
