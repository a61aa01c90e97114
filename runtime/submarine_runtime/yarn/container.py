"""Properties of the container before the program starts; the initial record."""

from __future__ import annotations

import os
import socket
import time
import traceback
from contextlib import suppress
from typing import Callable, Mapping, Sequence

from submarine_runtime.protocol.agent_config import AgentConfig
from submarine_runtime.protocol.fields import known
from submarine_runtime.protocol.quicklinks import settled
from submarine_runtime.protocol.record import JobRecord, Phase, TaskRecord
from submarine_runtime.protocol.states import State
from submarine_runtime.storage import application_id, container_id

#: Seconds between two lines about a wait in the container's log.
LOG_SECONDS = 60.0
#: The NodeManager writes this file into a container's directory after all its files are localized.
LAUNCH_SCRIPT = "launch_container.sh"


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
        phases=[Phase(**known(Phase, phase)) for phase in config.phases],
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
        links=settled(config.links, [config.role]),
        written_by="agent",
    )


def _log_url(environ: Mapping[str, str], user: str) -> str | None:
    host, port = environ.get("NM_HOST"), environ.get("NM_HTTP_PORT")
    container = container_id(environ)
    if not (host and port and container):
        return None
    return f"http://{host}:{port}/node/containerlogs/{container}/{user}"


def reachable_host(listen: str) -> str:
    """Return the host name under which other hosts connect to a listener on ``listen``."""
    if listen not in ("0.0.0.0", "::"):  # noqa: S104 - compared, not bound
        return listen
    return os.environ.get("NM_HOST") or socket.getfqdn()


def say(sentence: str) -> None:
    """Write to the container's own log, which is not the job's; ignore a full disk."""
    write_error(f"submarine agent: {sentence}\n")


def wait_teller(show: Callable[[str], None]) -> Callable[[str], None]:
    """Return a function for ``Store.on_wait``: it calls ``show`` and logs some of the texts.

    The container's log gets the first text and then one a minute.
    """
    logged = -LOG_SECONDS

    def tell(sentence: str) -> None:
        nonlocal logged
        show(sentence)
        now = time.monotonic()
        if sentence and now - logged >= LOG_SECONDS:
            logged = now
            say(sentence)

    return tell


def write_error(text: str) -> None:
    """Write to stderr without a buffer: a full disk raises nothing and changes no exit code."""
    with suppress(OSError):
        os.write(2, text.encode("utf-8", "replace"))


def write_traceback() -> None:
    """Write the exception that is being handled to the container's own log."""
    write_error(traceback.format_exc())


def first_change(paths: Sequence[str]) -> float | None:
    """Return the time of the earliest change of these files; None if none exists."""
    times = []
    for path in paths:
        with suppress(OSError):
            times.append(os.stat(path).st_ctime)
    return min(times) if times else None
