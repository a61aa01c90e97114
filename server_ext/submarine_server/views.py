"""Records as the JSON of ``labextension/src/api/types.ts``: every field of its type, all bounded.

What comes from containers and clusters is made fit to be shown here, once, for REST and websocket
alike. Asks nobody.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from submarine_jobs.display import summary, task_rows
from submarine_jobs.display.tame import number, tame
from submarine_jobs.display.untrusted import one_line, printable, web_link
from submarine_jobs.models import ModelVersion
from submarine_jobs.store import Origin
from submarine_jobs.tasks import telling_task
from submarine_jobs.view import JobView
from submarine_runtime.protocol.failure import Failure
from submarine_runtime.protocol.reasons import EndReason, meaning_of
from submarine_runtime.protocol.record import Event, JobRecord, TaskRecord

Json = dict[str, Any]
#: Tasks, events, frames and so on of one view.
MAX_TASKS = 200
MAX_EVENTS = 500
MAX_FRAMES = 100
MAX_ITEMS = 200
WORD, SENTENCE, TEXT = 200, 2000, 20_000
_MAX_DEPTH = 4
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
    known = isinstance(reason, EndReason)
    return {
        "record": record_json(record),
        "source": view.source,
        "pending": one_line(view.pending or record.pending, SENTENCE),
        "advice": one_line(summary.next_step(JobView(record)), SENTENCE),
        "reason_sentence": meaning_of(reason).sentence if known and reason is not None else "",
        "log_task": one_line(view.task or telling_task(record), WORD),
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
        "queue": _word(record.queue),
        "backend": one_line(record.backend, WORD),
        "created": record.created,
        "started": _started(record),
        "finished": record.finished,
        "progress": summary.progress(record),
        "tasks": len(record.tasks),
        "gpus": _gpus(record),
        "detail": one_line(_why(record), SENTENCE),
        "application_id": _word(record.application_id),
        "notebook": origin.notebook,
        "cell_id": origin.cell_id,
        "workflow": "",
    }


def record_json(record: JobRecord) -> Json:
    """``IJobRecord`` of a tame record."""
    tasks = record.tasks
    if len(tasks) > MAX_TASKS:
        tasks = task_rows.telling(record, MAX_TASKS)
    return {
        "job_id": one_line(record.job_id, WORD),
        "name": one_line(record.name, WORD),
        "state": record.state.value,
        "user": one_line(record.user, WORD),
        "backend": one_line(record.backend, WORD),
        "job_dir": one_line(record.job_dir, SENTENCE),
        "queue": _word(record.queue),
        "application_id": _word(record.application_id),
        "created": record.created,
        "finished": record.finished,
        "reason": _word(record.reason),
        "detail": printable(record.detail, SENTENCE),
        "exit_code": record.exit_code,
        "signal": record.signal,
        "progress": summary.progress(record),
        "phases": [
            {"name": one_line(phase.name, WORD), "start": phase.start, "end": phase.end}
            for phase in record.phases[:MAX_ITEMS]
        ],
        "tasks": [task_json(task) for task in tasks],
        "failure": _failure(record.failure) if record.failure is not None else None,
        "resources": _bounded(record.resources, 0),
        "outputs": [
            {"path": one_line(output.path, SENTENCE), "size": output.size}
            for output in record.outputs[:MAX_ITEMS]
        ],
        "logs": _lengths(record.logs),
        "links": _links(record.links),
        "missing": [one_line(words, SENTENCE) for words in record.missing[:MAX_ITEMS]],
        "behind": record.behind,
        "epoch": record.epoch,
        "pending": one_line(record.pending, SENTENCE),
        "hints": [one_line(words, SENTENCE) for words in record.hints[:MAX_ITEMS]],
    }


def task_json(task: TaskRecord) -> Json:
    """``ITask`` of a tame record's task."""
    progress = task.progress
    return {
        "task": one_line(task.task, WORD),
        "role": one_line(task.role, WORD),
        "index": task.index,
        "epoch": task.epoch,
        "attempt": task.attempt,
        "state": task.state.value,
        "container_id": _word(task.container_id),
        "host": _word(task.host),
        "started": task.started,
        "finished": task.finished,
        "exit_code": task.exit_code,
        "signal": task.signal,
        "progress": None if progress is None else min(max(progress, 0.0), 1.0),
        "gpus": [one_line(device, WORD) for device in task.gpus[:MAX_ITEMS]],
        "memory_now": task.memory_now,
        "memory_peak": task.memory_peak,
        "cpu_seconds": task.cpu_seconds,
        "gpu_percent": task.gpu_percent,
        "gpu_memory": task.gpu_memory,
        "restarts": task.restarts,
        "reason": _word(task.reason),
        "detail": one_line(task.detail, SENTENCE),
        "log_url": web_link(task.log_url),
    }


def event_json(event: Event) -> Json:
    """``IJobEvent`` of a tame record's event."""
    return {
        "seq": event.seq,
        "time": event.time,
        "kind": one_line(event.kind, WORD),
        "writer": one_line(event.writer, WORD),
        "state": event.state.value if event.state is not None else None,
        "reason": _word(event.reason),
        "detail": one_line(event.detail, SENTENCE),
        "task": _word(event.task),
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


def _failure(failure: Failure) -> Json:
    return {
        "type": one_line(failure.type, WORD),
        "message": printable(failure.message, TEXT),
        "frames": [
            {
                "file": one_line(frame.file, SENTENCE),
                "line": frame.line,
                "function": one_line(frame.function, WORD),
                "code": one_line(frame.code, SENTENCE),
                "cell": _word(frame.cell),
                "cell_id": _word(frame.cell_id),
                "cell_line": frame.cell_line,
            }
            for frame in failure.frames[-MAX_FRAMES:]
        ],
        "text": printable(failure.text, TEXT),
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


def _word(value: object) -> str | None:
    return one_line(value, WORD) if value is not None and str(value) else None


def _lengths(logs: dict[str, int]) -> dict[str, int]:
    found = {one_line(name, WORD): number(length) for name, length in list(logs.items())[:4096]}
    return {name: int(length) for name, length in found.items() if length is not None}


def _links(links: dict[str, str]) -> dict[str, str]:
    """Links that may become one; a label is text."""
    return {one_line(label, WORD): url for label, url in links.items() if web_link(url)}


def _bounded(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return printable(value, SENTENCE)
    if isinstance(value, bool):
        return value
    if isinstance(value, dict) and depth < _MAX_DEPTH:
        items = list(value.items())[:MAX_ITEMS]
        return {one_line(key, WORD): _bounded(item, depth + 1) for key, item in items}
    if isinstance(value, (list, tuple)) and depth < _MAX_DEPTH:
        return [_bounded(item, depth + 1) for item in value[:MAX_ITEMS]]
    return number(value)
