"""A job record as the JSON of ``labextension/src/api``: its tasks, events and failure.

What comes from containers is made fit to be shown here. What a view says besides is ``views``'.
"""

from __future__ import annotations

from typing import Any

from submarine_jobs.display import number, summary, task_rows
from submarine_jobs.text import one_line, printable, web_link
from submarine_runtime.protocol.record import Event, Failure, JobRecord, TaskRecord

Json = dict[str, Any]
#: Tasks, frames and so on of one view.
MAX_TASKS = 200
MAX_FRAMES = 100
MAX_ITEMS = 200
WORD, SENTENCE, TEXT = 200, 2000, 20_000
_MAX_DEPTH = 4


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
        "queue": word(record.queue),
        "application_id": word(record.application_id),
        "workflow": one_line(record.workflow, WORD),
        "workflow_run": one_line(record.workflow_run, WORD),
        "workflow_node": one_line(record.workflow_node, WORD),
        "created": record.created,
        "finished": record.finished,
        "reason": word(record.reason),
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
        "warnings": [one_line(words, SENTENCE) for words in record.warnings[:MAX_ITEMS]],
        "missing": [one_line(words, SENTENCE) for words in record.missing[:MAX_ITEMS]],
        "behind": record.behind,
        "epoch": record.epoch,
        "pending": one_line(record.pending, SENTENCE),
        "notes": [one_line(words, SENTENCE) for words in record.notes[:MAX_ITEMS]],
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
        "container_id": word(task.container_id),
        "host": word(task.host),
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
        "reason": word(task.reason),
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
        "reason": word(event.reason),
        "detail": one_line(event.detail, SENTENCE),
        "task": word(event.task),
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
                "cell": word(frame.cell),
                "cell_id": word(frame.cell_id),
                "cell_line": frame.cell_line,
            }
            for frame in failure.frames[-MAX_FRAMES:]
        ],
        "text": printable(failure.text, TEXT),
    }


def word(value: object) -> str | None:
    """A name on one line; None where there is none."""
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
