"""Sanitize a record for display: drop values of a wrong type.

``JobRecord.from_json`` does not check the type of each value, and containers are untrusted. Texts
are not escaped here.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, TypeVar

from submarine_jobs.model import JobView
from submarine_runtime.protocol.reasons import EndReason
from submarine_runtime.protocol.record import (
    Event,
    Failure,
    JobRecord,
    Output,
    Phase,
    TaskRecord,
    TracebackFrame,
)

T = TypeVar("T")
_MAX_ITEMS = 4096
_MAX_NUMBER = 1e15


def sanitize_view(view: JobView) -> JobView:
    """Return the view with a sanitized record."""
    return replace(view, record=sanitize(view.record))


def sanitize(record: JobRecord) -> JobRecord:
    """Return a copy of ``record`` with fields of the declared types and only the newest events."""
    reason = record.reason
    return replace(
        record,
        job_id=text(record.job_id),
        name=text(record.name),
        user=text(record.user),
        backend=text(record.backend),
        job_dir=text(record.job_dir),
        queue=text(record.queue) or None,
        application_id=text(record.application_id) or None,
        workflow=text(record.workflow),
        workflow_run=text(record.workflow_run),
        workflow_node=text(record.workflow_node),
        created=number(record.created),
        finished=number(record.finished),
        # An unknown reason of a newer agent is a string.
        reason=reason if isinstance(reason, EndReason) else (text(reason) or None),  # type: ignore[arg-type]
        detail=text(record.detail),
        exit_code=whole(record.exit_code),
        signal=whole(record.signal),
        progress=number(record.progress),
        phases=[_phase(item) for item in _items(record.phases, Phase) if _is_phase(item)],
        tasks=[_task(item) for item in _items(record.tasks, TaskRecord)],
        events=[_event(item) for item in _newest(record.events) if number(item.time) is not None],
        failure=_failure(record.failure) if isinstance(record.failure, Failure) else None,
        resources=record.resources if isinstance(record.resources, dict) else {},
        outputs=[
            Output(item.path, whole(item.size) or 0)
            for item in _items(record.outputs, Output)
            if isinstance(item.path, str)
        ],
        logs=record.logs if isinstance(record.logs, dict) else {},
        links=_links(record.links),
        warnings=[text(item) for item in _items(record.warnings, str)],
        missing=[text(item) for item in _items(record.missing, str)],
        behind=number(record.behind),
        last_known=record.last_known is True,
        written_by=text(record.written_by),
        epoch=whole(record.epoch) or 1,
        pending=text(record.pending),
        hints=[text(item) for item in _items(record.hints, str)],
        notes=[text(item) for item in _items(record.notes, str)],
    )


def text(value: object) -> str:
    """Return ``value`` if it is text, a number as text, or else an empty text."""
    if isinstance(value, str):
        return value
    return str(number(value)) if number(value) is not None else ""


def number(value: object) -> float | None:
    """Return ``value`` if it is a finite number of a plausible size."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return value if math.isfinite(value) and abs(value) < _MAX_NUMBER else None


def whole(value: object) -> int | None:
    """Return ``value`` if it is an integer of a plausible size."""
    fit = number(value)
    return fit if isinstance(fit, int) else None


def _items(value: object, kind: type[T]) -> list[T]:
    found = value if isinstance(value, list) else []
    return [item for item in found[:_MAX_ITEMS] if isinstance(item, kind)]


def _is_phase(phase: Phase) -> bool:
    return number(phase.start) is not None


def _phase(phase: Phase) -> Phase:
    return Phase(text(phase.name), number(phase.start) or 0.0, number(phase.end))


def _task(task: TaskRecord) -> TaskRecord:
    reason = task.reason
    return replace(
        task,
        task=text(task.task),
        role=text(task.role),
        index=whole(task.index) or 0,
        epoch=whole(task.epoch) or 1,
        attempt=whole(task.attempt) or 1,
        container_id=text(task.container_id) or None,
        host=text(task.host) or None,
        started=number(task.started),
        finished=number(task.finished),
        exit_code=whole(task.exit_code),
        signal=whole(task.signal),
        progress=number(task.progress),
        gpus=[text(item) for item in _items(task.gpus, str)],
        memory_now=number(task.memory_now),
        memory_peak=number(task.memory_peak),
        cpu_seconds=number(task.cpu_seconds),
        gpu_percent=number(task.gpu_percent),
        gpu_memory=number(task.gpu_memory),
        restarts=whole(task.restarts) or 0,
        reason=reason if isinstance(reason, EndReason) else None,
        detail=text(task.detail),
        network=text(task.network) or None,
        log_url=text(task.log_url) or None,
    )


def _newest(value: object) -> list[Event]:
    found = value if isinstance(value, list) else []
    return [item for item in found[-_MAX_ITEMS:] if isinstance(item, Event)]


def _event(event: Event) -> Event:
    return Event(
        whole(event.seq) or 0,
        number(event.time) or 0.0,
        text(event.kind),
        text(event.writer),
        event.state,
        event.reason,
        text(event.detail),
        text(event.task) or None,
        {"epoch": whole(event.data.get("epoch"))} if isinstance(event.data, dict) else {},
    )


def _failure(failure: Failure) -> Failure:
    frames = [
        TracebackFrame(
            text(frame.file),
            whole(frame.line) or 0,
            text(frame.function),
            text(frame.code),
            text(frame.cell) or None,
            text(frame.cell_id) or None,
            whole(frame.cell_line),
        )
        for frame in _items(failure.frames, TracebackFrame)
    ]
    return Failure(text(failure.type), text(failure.message), frames, text(failure.text))


def _links(value: Any) -> dict[str, str]:
    found = value if isinstance(value, dict) else {}
    return {
        text(label): text(url) for label, url in list(found.items())[:50] if isinstance(url, str)
    }
