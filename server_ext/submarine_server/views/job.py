"""Convert job views and rows to the JSON of ``labextension/src/api``.

All values are bounded and sanitized here and in ``record``, for REST and websocket.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from submarine_jobs.display import (
    lost_if_cancelled,
    next_step,
    number,
    sanitize,
    sentence,
    summary,
)
from submarine_jobs.model import JobView, most_relevant_task
from submarine_jobs.outputs import ModelVersion
from submarine_jobs.text import one_line
from submarine_jobs.tracking import Origin
from submarine_runtime.protocol import JobRecord
from submarine_server.views.answers import JobRowJson, JobViewJson, ModelVersionJson
from submarine_server.views.record import (
    MAX_ITEMS,
    MAX_SENTENCE,
    MAX_SHORT,
    Json,
    event_json,
    record_json,
    short_text,
)

#: Maximum number of events.
MAX_EVENTS = 500
NO_ORIGIN = Origin()


@dataclass(frozen=True)
class JobDetails:
    """Details of a job that are not in its record.

    Parameters
    ----------
    origin
        The notebook as a path of the file browser, and the cell that submitted the job.
    command
        The command that runs the job again.
    mine
        Whether the server's user may change the job.
    """

    origin: Origin = NO_ORIGIN
    command: str = ""
    mine: bool = False
    has_tensorboard: bool = False


def view_json(view: JobView, details: JobDetails) -> Json:
    """Return ``IJobView``."""
    record = sanitize(view.record)
    status = sentence(JobView(record, pending=view.pending))
    found: JobViewJson = {
        "record": record_json(record),
        "source": view.source,
        "pending": one_line(view.pending or record.pending, MAX_SENTENCE),
        "advice": one_line(next_step(JobView(record)), MAX_SENTENCE),
        "lost_if_cancelled": lost_if_cancelled(record),
        "status": one_line(status, MAX_SENTENCE),
        "log_task": one_line(view.task or most_relevant_task(record), MAX_SHORT),
        "task_count": len(record.tasks),
        "events": [event_json(event) for event in record.events[-MAX_EVENTS:]],
        "command": details.command,
        "notebook": details.origin.notebook,
        "cell_id": details.origin.cell_id,
        "mine": details.mine,
        "has_tensorboard": details.has_tensorboard,
    }
    return cast("Json", found)


def row_json(record: JobRecord, origin: Origin) -> Json:
    """Return ``IJobRow``."""
    record = sanitize(record)
    found: JobRowJson = {
        "job_id": one_line(record.job_id, MAX_SHORT),
        "name": one_line(record.name, MAX_SHORT),
        "state": record.state.value,
        "user": one_line(record.user, MAX_SHORT),
        "queue": short_text(record.queue),
        "backend": one_line(record.backend, MAX_SHORT),
        "created": record.created,
        "started": _started(record),
        "finished": record.finished,
        "progress": summary.progress(record),
        "tasks": len(record.tasks),
        "gpus": _gpus(record),
        "detail": one_line(_detail(record), MAX_SENTENCE),
        "application_id": short_text(record.application_id),
        "notebook": origin.notebook,
        "cell_id": origin.cell_id,
        "workflow": one_line(record.workflow, MAX_SHORT),
        "workflow_run": one_line(record.workflow_run, MAX_SHORT),
        "workflow_node": one_line(record.workflow_node, MAX_SHORT),
    }
    return cast("Json", found)


def model_json(version: ModelVersion) -> ModelVersionJson:
    """Return ``IModelVersion``."""
    return {
        "version": version.name,
        "name": version.name,
        "time": number(version.time) or 0.0,
        "size": version.size,
        "files": version.count,
        "digest": one_line(version.digest, MAX_SHORT),
    }


def _started(record: JobRecord) -> float | None:
    times = [task.started for task in record.tasks if task.started is not None]
    times += [phase.start for phase in record.phases if phase.name in ("start", "run")]
    return min(times, default=None)


def _gpus(record: JobRecord) -> int:
    """Requested GPUs of all tasks."""
    requested = record.resources.get("requested")
    total = 0
    for role, resources in (
        list(requested.items())[:MAX_ITEMS] if isinstance(requested, dict) else []
    ):
        gpus = number(resources.get("gpus")) if isinstance(resources, dict) else None
        tasks = sum(task.role == role for task in record.tasks) or 1
        total += int(gpus or 0) * tasks
    return total


def _detail(record: JobRecord) -> str:
    if not record.state.ended:
        return record.pending or record.detail
    if record.detail or record.reason is None:
        return record.detail
    return record.reason.meaning.sentence
