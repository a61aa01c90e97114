"""Convert job records, tasks and events to the JSON of ``labextension/src/api``.

All values are bounded and sanitized: they come from containers.
"""

from __future__ import annotations

from typing import Any

from submarine_jobs.display import number, summary, task_rows
from submarine_jobs.text import one_line, printable, web_link
from submarine_runtime.protocol import Event, Failure, JobRecord, TaskRecord

Json = dict[str, Any]
#: Limits of one view.
MAX_TASKS = 200
MAX_FRAMES = 100
MAX_ITEMS = 200
MAX_SHORT, MAX_SENTENCE, MAX_TEXT = 200, 2000, 20_000
_MAX_DEPTH = 4


def record_json(record: JobRecord) -> Json:
    """Return ``IJobRecord`` of a validated record."""
    tasks = record.tasks
    if len(tasks) > MAX_TASKS:
        tasks = task_rows.notable(record, MAX_TASKS)
    return {
        "job_id": one_line(record.job_id, MAX_SHORT),
        "name": one_line(record.name, MAX_SHORT),
        "state": record.state.value,
        "user": one_line(record.user, MAX_SHORT),
        "backend": one_line(record.backend, MAX_SHORT),
        "job_dir": one_line(record.job_dir, MAX_SENTENCE),
        "queue": short_text(record.queue),
        "application_id": short_text(record.application_id),
        "workflow": one_line(record.workflow, MAX_SHORT),
        "workflow_run": one_line(record.workflow_run, MAX_SHORT),
        "workflow_node": one_line(record.workflow_node, MAX_SHORT),
        "created": record.created,
        "finished": record.finished,
        "reason": short_text(record.reason),
        "detail": printable(record.detail, MAX_SENTENCE),
        "exit_code": record.exit_code,
        "signal": record.signal,
        "progress": summary.progress(record),
        "phases": [
            {"name": one_line(phase.name, MAX_SHORT), "start": phase.start, "end": phase.end}
            for phase in record.phases[:MAX_ITEMS]
        ],
        "tasks": [task_json(task) for task in tasks],
        "failure": _failure(record.failure) if record.failure is not None else None,
        "resources": _bounded(record.resources, 0),
        "outputs": [
            {"path": one_line(output.path, MAX_SENTENCE), "size": output.size}
            for output in record.outputs[:MAX_ITEMS]
        ],
        "saved_outputs": [
            {
                "name": one_line(output.name, MAX_SHORT),
                "uri": one_line(output.uri, MAX_SENTENCE),
                "files": output.files,
                "bytes": output.bytes,
            }
            for output in record.saved_outputs[:MAX_ITEMS]
        ],
        "logs": _lengths(record.logs),
        "links": _links(record.links),
        "warnings": [one_line(words, MAX_SENTENCE) for words in record.warnings[:MAX_ITEMS]],
        "missing": [one_line(words, MAX_SENTENCE) for words in record.missing[:MAX_ITEMS]],
        "behind": record.behind,
        "epoch": record.epoch,
        "pending": one_line(record.pending, MAX_SENTENCE),
        "notes": [one_line(words, MAX_SENTENCE) for words in record.notes[:MAX_ITEMS]],
        "hints": [one_line(words, MAX_SENTENCE) for words in record.hints[:MAX_ITEMS]],
    }


def task_json(task: TaskRecord) -> Json:
    """Return ``ITask`` of a task of a validated record."""
    progress = task.progress
    return {
        "task": one_line(task.task, MAX_SHORT),
        "role": one_line(task.role, MAX_SHORT),
        "index": task.index,
        "epoch": task.epoch,
        "attempt": task.attempt,
        "state": task.state.value,
        "container_id": short_text(task.container_id),
        "host": short_text(task.host),
        "started": task.started,
        "finished": task.finished,
        "exit_code": task.exit_code,
        "signal": task.signal,
        "progress": None if progress is None else min(max(progress, 0.0), 1.0),
        "gpus": [one_line(device, MAX_SHORT) for device in task.gpus[:MAX_ITEMS]],
        "memory_now": task.memory_now,
        "memory_peak": task.memory_peak,
        "cpu_seconds": task.cpu_seconds,
        "gpu_percent": task.gpu_percent,
        "gpu_memory": task.gpu_memory,
        "restarts": task.restarts,
        "reason": short_text(task.reason),
        "detail": one_line(task.detail, MAX_SENTENCE),
        "log_url": web_link(task.log_url),
    }


def event_json(event: Event) -> Json:
    """Return ``IJobEvent`` of an event of a validated record."""
    return {
        "seq": event.seq,
        "time": event.time,
        "kind": one_line(event.kind, MAX_SHORT),
        "writer": one_line(event.writer, MAX_SHORT),
        "state": event.state.value if event.state is not None else None,
        "reason": short_text(event.reason),
        "detail": one_line(event.detail, MAX_SENTENCE),
        "task": short_text(event.task),
    }


def _failure(failure: Failure) -> Json:
    return {
        "type": one_line(failure.type, MAX_SHORT),
        "message": printable(failure.message, MAX_TEXT),
        "frames": [
            {
                "file": one_line(frame.file, MAX_SENTENCE),
                "line": frame.line,
                "function": one_line(frame.function, MAX_SHORT),
                "code": one_line(frame.code, MAX_SENTENCE),
                "cell": short_text(frame.cell),
                "cell_id": short_text(frame.cell_id),
                "cell_line": frame.cell_line,
            }
            for frame in failure.frames[-MAX_FRAMES:]
        ],
        "text": printable(failure.text, MAX_TEXT),
        "time": failure.time,
        "rank": failure.rank,
    }


def short_text(value: object) -> str | None:
    """Return a text on one line; None if it is empty."""
    return one_line(value, MAX_SHORT) if value is not None and str(value) else None


def _lengths(logs: dict[str, int]) -> dict[str, int]:
    found = {
        one_line(name, MAX_SHORT): number(length) for name, length in list(logs.items())[:4096]
    }
    return {name: int(length) for name, length in found.items() if length is not None}


def _links(links: dict[str, str]) -> dict[str, str]:
    """Links with web addresses; labels are text."""
    return {one_line(label, MAX_SHORT): url for label, url in links.items() if web_link(url)}


def _bounded(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return printable(value, MAX_SENTENCE)
    if isinstance(value, bool):
        return value
    if isinstance(value, dict) and depth < _MAX_DEPTH:
        items = list(value.items())[:MAX_ITEMS]
        return {one_line(key, MAX_SHORT): _bounded(item, depth + 1) for key, item in items}
    if isinstance(value, (list, tuple)) and depth < _MAX_DEPTH:
        return [_bounded(item, depth + 1) for item in value[:MAX_ITEMS]]
    return number(value)
