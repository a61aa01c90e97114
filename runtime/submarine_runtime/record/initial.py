"""The record of a job before its program has started."""

from __future__ import annotations

import os
import socket
from copy import deepcopy
from dataclasses import replace
from typing import Mapping

from submarine_runtime.protocol import AgentConfig, JobRecord, State, TaskRecord, fixed_links
from submarine_runtime.storage import application_id, container_id


def new_record(config: AgentConfig, task: str) -> JobRecord:
    """Return the initial record."""
    environ = os.environ
    return replace(
        deepcopy(config.record),
        state=State.PENDING,
        application_id=application_id(environ),
        tasks=[
            TaskRecord(
                task,
                config.role,
                config.index,
                config.epoch,
                config.attempt,
                container_id=container_id(environ),
                host=environ.get("NM_HOST") or socket.gethostname(),
                pid=os.getpid(),
                log_url=_log_url(environ, config.record.user),
            )
        ],
        resources={**config.record.resources, "used": {}},
        links=fixed_links(config.links, [config.role]),
        written_by="agent",
    )


def _log_url(environ: Mapping[str, str], user: str) -> str | None:
    host, port = environ.get("NM_HOST"), environ.get("NM_HTTP_PORT")
    container = container_id(environ)
    if not (host and port and container):
        return None
    return f"http://{host}:{port}/node/containerlogs/{container}/{user}"
