"""The record of a job before its program has started, of an agent and of a coordinator."""

from __future__ import annotations

import os
import socket
from copy import deepcopy
from dataclasses import replace
from typing import Any, Mapping, Sequence

from submarine_runtime.protocol import (
    AgentConfig,
    CoordinatorConfig,
    JobRecord,
    State,
    TaskRecord,
    fixed_links,
)
from submarine_runtime.storage import application_id, container_id


def initial_record(
    config: AgentConfig | CoordinatorConfig,
    tasks: Sequence[TaskRecord],
    written_by: str,
    **fields: Any,
) -> JobRecord:
    """Return the record of a job with ``tasks``; ``fields`` are further fields."""
    return replace(
        deepcopy(config.record),
        state=State.PENDING,
        application_id=application_id(os.environ),
        tasks=list(tasks),
        resources={**config.record.resources, "used": {}},
        links=fixed_links(config.links, [role.name for role in config.spec.roles]),
        written_by=written_by,
        **fields,
    )


def new_record(config: AgentConfig, task: str) -> JobRecord:
    """Return the record of an agent."""
    environ = os.environ
    own = TaskRecord(
        task,
        config.role,
        config.index,
        config.epoch,
        config.attempt,
        container_id=container_id(environ),
        host=environ.get("NM_HOST") or socket.gethostname(),
        pid=os.getpid(),
        log_url=_log_url(environ, config),
    )
    return initial_record(config, [own], "agent")


def _log_url(environ: Mapping[str, str], config: AgentConfig) -> str | None:
    host, port = environ.get("NM_HOST"), environ.get("NM_HTTP_PORT")
    container = container_id(environ)
    if not (host and port and container):
        return None
    place = f"{config.node_scheme}://{host}:{port}"
    return f"{place}/node/containerlogs/{container}/{config.record.user}"
