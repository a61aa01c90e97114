"""A record whose every field has the type that it should have, whatever a container sent.

``JobRecord.from_json`` checks the form of a record, not the type of each value. A display must not
fail over a text where a number belongs: here that text is dropped. Escapes nothing.
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


def tame_view(view: JobView) -> JobView:
    """The view with a tame record."""
    return replace(view, record=tame(view.record))


def tame(record: JobRecord) -> JobRecord:
    """A copy of ``record`` in which every field has its type; the newest events only."""
    reason = record.reason
    return replace(
        record,
        job_id=words(record.job_id),
        name=words(record.name),
        user=words(record.user),
        backend=words(record.backend),
        job_dir=words(record.job_dir),
        queue=words(record.queue) or None,
        application_id=words(record.application_id) or None,
        workflow=words(record.workflow),
        workflow_run=words(record.workflow_run),
        workflow_node=words(record.workflow_node),
        created=number(record.created),
        finished=number(record.finished),
        # A reason of a newer agent is a plain word.
        reason=reason if isinstance(reason, EndReason) else (words(reason) or None),  # type: ignore[arg-type]
        detail=words(record.detail),
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
        warnings=[words(item) for item in _items(record.warnings, str)],
        missing=[words(item) for item in _items(record.missing, str)],
        behind=number(record.behind),
        last_known=record.last_known is True,
        written_by=words(record.written_by),
        epoch=whole(record.epoch) or 1,
        pending=words(record.pending),
        hints=[words(item) for item in _items(record.hints, str)],
        notes=[words(item) for item in _items(record.notes, str)],
    )


def words(value: object) -> str:
    """``value`` if it is text; a number as text; else nothing."""
    if isinstance(value, str):
        return value
    return str(number(value)) if number(value) is not None else ""


def number(value: object) -> float | None:
    """``value`` if it is a finite number of a size that occurs."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return value if math.isfinite(value) and abs(value) < _MAX_NUMBER else None


def whole(value: object) -> int | None:
    """``value`` if it is a whole number of a size that occurs."""
    fit = number(value)
    return fit if isinstance(fit, int) else None


def _items(value: object, kind: type[T]) -> list[T]:
    found = value if isinstance(value, list) else []
    return [item for item in found[:_MAX_ITEMS] if isinstance(item, kind)]


def _is_phase(phase: Phase) -> bool:
    return number(phase.start) is not None


def _phase(phase: Phase) -> Phase:
    return Phase(words(phase.name), number(phase.start) or 0.0, number(phase.end))


def _task(task: TaskRecord) -> TaskRecord:
    reason = task.reason
    return replace(
        task,
        task=words(task.task),
        role=words(task.role),
        index=whole(task.index) or 0,
        epoch=whole(task.epoch) or 1,
        attempt=whole(task.attempt) or 1,
        container_id=words(task.container_id) or None,
        host=words(task.host) or None,
        started=number(task.started),
        finished=number(task.finished),
        exit_code=whole(task.exit_code),
        signal=whole(task.signal),
        progress=number(task.progress),
        gpus=[words(item) for item in _items(task.gpus, str)],
        memory_now=number(task.memory_now),
        memory_peak=number(task.memory_peak),
        cpu_seconds=number(task.cpu_seconds),
        gpu_percent=number(task.gpu_percent),
        gpu_memory=number(task.gpu_memory),
        restarts=whole(task.restarts) or 0,
        reason=reason if isinstance(reason, EndReason) else None,
        detail=words(task.detail),
        network=words(task.network) or None,
        log_url=words(task.log_url) or None,
    )


def _newest(value: object) -> list[Event]:
    found = value if isinstance(value, list) else []
    return [item for item in found[-_MAX_ITEMS:] if isinstance(item, Event)]


def _event(event: Event) -> Event:
    return Event(
        whole(event.seq) or 0,
        number(event.time) or 0.0,
        words(event.kind),
        words(event.writer),
        event.state,
        event.reason,
        words(event.detail),
        words(event.task) or None,
        {"epoch": whole(event.data.get("epoch"))} if isinstance(event.data, dict) else {},
    )


def _failure(failure: Failure) -> Failure:
    frames = [
        TracebackFrame(
            words(frame.file),
            whole(frame.line) or 0,
            words(frame.function),
            words(frame.code),
            words(frame.cell) or None,
            words(frame.cell_id) or None,
            whole(frame.cell_line),
        )
        for frame in _items(failure.frames, TracebackFrame)
    ]
    return Failure(words(failure.type), words(failure.message), frames, words(failure.text))


def _links(value: Any) -> dict[str, str]:
    found = value if isinstance(value, dict) else {}
    return {
        words(label): words(url) for label, url in list(found.items())[:50] if isinstance(url, str)
    }
