"""The MIME bundle of a job in a notebook's outputs: JSON, HTML and text, with limits."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from submarine_jobs.display import status, task_rows
from submarine_jobs.display.card import html
from submarine_jobs.display.plain import text
from submarine_jobs.display.sanitized_record import sanitize_view
from submarine_jobs.model import JobView
from submarine_jobs.text import printable
from submarine_runtime.protocol import JobRecord

MIME_TYPE = "application/vnd.submarine.job.v1+json"
_MAX_ITEMS = 50
_MAX_TEXT = 4000
_MAX_RESULTS = 20
_MAX_NUMBER = 1e300


def mimebundle(
    view: JobView, *, now: float | None = None, result: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return MIME type -> data of a job: JSON for the JupyterLab extension, HTML and text.

    The JSON contains ``job_id job_dir name state``, ``time`` of this state, ``roles`` (role ->
    state -> number of tasks), ``log_task`` (the task of the log in the HTML), ``status`` (the
    sentence on the state), ``advice`` of an ended job, ``result`` (returned values as short
    texts) and ``record``, a snapshot without events. Lists are cut to 50 entries and texts to
    4,000 characters, so a bundle is far smaller than 1 MB.
    """
    view = sanitize_view(view)
    record = view.record
    return {
        MIME_TYPE: {
            "version": 1,
            "job_id": printable(record.job_id, 200),
            "job_dir": printable(record.job_dir, 2000),
            "name": printable(record.name, 200),
            "state": record.state.value,
            "source": view.source,
            "pending": printable(view.pending or record.pending, _MAX_TEXT),
            "time": time.time() if now is None else now,
            "log_task": printable(view.task, 200),
            "status": printable(status.sentence(view), _MAX_TEXT),
            "advice": printable(status.next_step(view), _MAX_TEXT),
            "result": _texts(result or {}),
            "roles": _roles(record),
            "record": snapshot(record),
        },
        "text/html": html(view, now=now, result=result),
        "text/plain": text(view, now=now, command="%submarine", result=result),
    }


def _texts(values: Mapping[str, str]) -> dict[str, str]:
    return {
        printable(name, 80): printable(value, 200)
        for name, value in list(values.items())[:_MAX_RESULTS]
    }


def snapshot(record: JobRecord) -> dict[str, Any]:
    """Return the record without events as bounded JSON; of many tasks only the notable ones."""
    failure = record.failure
    tasks = record.tasks
    if len(tasks) > _MAX_ITEMS:
        tasks = task_rows.notable(record, _MAX_ITEMS)
    if failure is not None:
        failure = replace(failure, frames=failure.frames[-_MAX_ITEMS:], text="")
    bounded = _bounded(replace(record, events=[], failure=failure, tasks=tasks).to_json(), 0)
    assert isinstance(bounded, dict)
    return bounded


def _roles(record: JobRecord) -> dict[str, dict[str, int]]:
    """Return role -> state -> number of tasks."""
    return {
        printable(summary.role, 200): {state.value: number for state, number in summary.states}
        for summary in task_rows.roles(record)[:_MAX_ITEMS]
    }


def _bounded(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return printable(value, _MAX_TEXT)
    if depth > 8:
        return None
    if isinstance(value, dict):
        return {
            printable(key, 200): _bounded(item, depth + 1)
            for key, item in list(value.items())[:_MAX_ITEMS]
        }
    if isinstance(value, (list, tuple)):
        return [_bounded(item, depth + 1) for item in value[:_MAX_ITEMS]]
    if isinstance(value, (int, float)) and not abs(value) < _MAX_NUMBER:
        return None
    return value if isinstance(value, (bool, int, float)) else None
