"""The record of a job before its program has started."""

from __future__ import annotations

import os
import socket
from typing import Mapping

from submarine_runtime.protocol.agent_config import AgentConfig
from submarine_runtime.protocol.fields import known_fields
from submarine_runtime.protocol.quicklinks import fixed_links
from submarine_runtime.protocol.record import JobRecord, Phase, TaskRecord
from submarine_runtime.protocol.states import State
from submarine_runtime.storage import application_id, container_id


def new_record(config: AgentConfig, task: str) -> JobRecord:
    """Return the initial record."""
    environ = os.environ
    requested = config.resources.get("requested", config.resources)
    return JobRecord(
        job_id=config.job_id,
        name=config.name,
        state=State.PENDING,
        user=config.user,
        backend=config.backend,
        job_dir=config.job_dir,
        queue=config.queue,
        application_id=application_id(environ),
        created=config.created,
        workflow=config.workflow,
        workflow_run=config.workflow_run,
        workflow_node=config.workflow_node,
        phases=[Phase(**known_fields(Phase, phase)) for phase in config.phases],
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
                log_url=_log_url(environ, config.user),
            )
        ],
        resources={"requested": requested, "used": {}},
        notes=list(config.notes),
        links=fixed_links(config.links, [config.role]),
        written_by="agent",
    )


def _log_url(environ: Mapping[str, str], user: str) -> str | None:
    host, port = environ.get("NM_HOST"), environ.get("NM_HTTP_PORT")
    container = container_id(environ)
    if not (host and port and container):
        return None
    return f"http://{host}:{port}/node/containerlogs/{container}/{user}"
