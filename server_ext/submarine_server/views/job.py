"""Views and rows of jobs as the JSON of ``labextension/src/api``, all of it bounded.

What comes from containers and clusters is made fit to be shown here and in ``record_views``, once,
for REST and websocket alike. Asks nobody.
"""

from __future__ import annotations

from dataclasses import dataclass

from submarine_jobs.display import number, summary, tame
from submarine_jobs.model import JobView, most_relevant_task
from submarine_jobs.outputs import ModelVersion
from submarine_jobs.text import one_line
from submarine_jobs.tracking import Origin
from submarine_runtime.protocol.reasons import EndReason, meaning_of
from submarine_runtime.protocol.record import JobRecord
from submarine_server.views.record import (
    MAX_ITEMS,
    SENTENCE,
    WORD,
    Json,
    event_json,
    record_json,
    word,
)

#: Events of one view.
MAX_EVENTS = 500
NOWHERE = Origin()


@dataclass(frozen=True)
class About:
    """What a view says besides its record: from the spec and from who asks.

    Parameters
    ----------
    origin
        The notebook as the server's file browser knows it, and the cell that launched the job.
    command
        The words that would run it again.
    mine
        Whether this server's user may act on it.
    """

    origin: Origin = NOWHERE
    command: str = ""
    mine: bool = False
    has_tensorboard: bool = False


def view_json(view: JobView, about: About) -> Json:
    """``IJobView``."""
    record = tame(view.record)
    reason = record.reason
    sentence = meaning_of(reason).sentence if isinstance(reason, EndReason) else ""
    return {
        "record": record_json(record),
        "source": view.source,
        "pending": one_line(view.pending or record.pending, SENTENCE),
        "advice": one_line(summary.next_step(JobView(record)), SENTENCE),
        "lost_if_cancelled": summary.lost_if_cancelled(record),
        "reason_sentence": f"{sentence} {summary.saved(record)}".strip() if sentence else "",
        "log_task": one_line(view.task or most_relevant_task(record), WORD),
        "task_count": len(record.tasks),
        "events": [event_json(event) for event in record.events[-MAX_EVENTS:]],
        "command": about.command,
        "notebook": about.origin.notebook,
        "cell_id": about.origin.cell_id,
        "mine": about.mine,
        "has_tensorboard": about.has_tensorboard,
    }


def row_json(record: JobRecord, origin: Origin) -> Json:
    """``IJobRow``."""
    record = tame(record)
    return {
        "job_id": one_line(record.job_id, WORD),
        "name": one_line(record.name, WORD),
        "state": record.state.value,
        "user": one_line(record.user, WORD),
        "queue": word(record.queue),
        "backend": one_line(record.backend, WORD),
        "created": record.created,
        "started": _started(record),
        "finished": record.finished,
        "progress": summary.progress(record),
        "tasks": len(record.tasks),
        "gpus": _gpus(record),
        "detail": one_line(_why(record), SENTENCE),
        "application_id": word(record.application_id),
        "notebook": origin.notebook,
        "cell_id": origin.cell_id,
        "workflow": one_line(record.workflow, WORD),
        "workflow_run": one_line(record.workflow_run, WORD),
        "workflow_node": one_line(record.workflow_node, WORD),
    }


def model_json(version: ModelVersion) -> Json:
    """``IModelVersion``."""
    return {
        "version": version.name,
        "name": version.name,
        "time": number(version.time) or 0.0,
        "size": version.size,
        "files": version.count,
        "digest": one_line(version.digest, WORD),
    }


def _started(record: JobRecord) -> float | None:
    times = [task.started for task in record.tasks if task.started is not None]
    times += [phase.start for phase in record.phases if phase.name in ("start", "run")]
    return min(times, default=None)


def _gpus(record: JobRecord) -> int:
    """GPUs that were asked for, all tasks together."""
    requested = record.resources.get("requested")
    total = 0
    for role, asked in list(requested.items())[:MAX_ITEMS] if isinstance(requested, dict) else []:
        gpus = number(asked.get("gpus")) if isinstance(asked, dict) else None
        tasks = sum(task.role == role for task in record.tasks) or 1
        total += int(gpus or 0) * tasks
    return total


def _why(record: JobRecord) -> str:
    if not record.state.ended:
        return record.pending or record.detail
    if record.detail or not isinstance(record.reason, EndReason):
        return record.detail
    return meaning_of(record.reason).sentence
