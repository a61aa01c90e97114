"""Samples of a job as ``ISeries``: one a task, attempt and quantity, thinned to so many points.

Does not read samples (``submarine_jobs.outputs.metrics``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from submarine_jobs.outputs import Row
from submarine_jobs.text import one_line
from submarine_runtime.protocol.layout import attempt_name

#: Series of one answer, and scalars of one attempt.
MAX_SERIES = 2000
MAX_SCALARS = 24
MAX_NAME = 64
Point = tuple[float, float | None]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _last(values: Sequence[float]) -> float:
    return values[-1]


#: Quantity -> unit, and what stands for several samples: no peak of memory is thinned away.
_RESOURCES: dict[str, tuple[str, Callable[[Sequence[float]], float]]] = {
    "cpu_percent": ("%", _mean),
    "memory": ("MiB", max),
    "gpu_percent": ("%", _mean),
    "gpu_memory": ("MiB", max),
    "progress": ("", _last),
}


def series_json(rows: Iterable[Row], points: int) -> list[dict[str, Any]]:
    """``ISeries[]`` of rows in order of task, attempt and time; at most ``points`` points each."""
    attempts: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        attempts.setdefault((row.task, attempt_name(row.epoch, row.attempt)), []).append(row)
    found: list[dict[str, Any]] = []
    for (task, attempt), samples in attempts.items():
        for name, kind, unit, course in _courses(samples, points):
            if len(found) >= MAX_SERIES:
                return found
            found.append(
                {
                    "task": task,
                    "attempt": attempt,
                    "name": one_line(name, MAX_NAME),
                    "kind": kind,
                    "unit": unit,
                    "t": [round(time, 3) for time, _ in course],
                    "v": [value for _, value in course],
                }
            )
    return found


def _courses(rows: list[Row], points: int) -> Iterable[tuple[str, str, str, list[Point]]]:
    for name, (unit, settle) in _RESOURCES.items():
        course = thinned([(row.time, getattr(row, name)) for row in rows], points, settle)
        if any(value is not None for _, value in course):
            yield name, "resource", unit, course
    scalars = list(dict.fromkeys(name for row in rows for name in row.scalars))
    for name in scalars[:MAX_SCALARS]:
        samples = [(row.time, row.scalars[name]) for row in rows if name in row.scalars]
        # Between two values that a training writes stand many samples of the same.
        changed = [
            sample
            for number, sample in enumerate(samples)
            if number in (0, len(samples) - 1) or sample[1] != samples[number - 1][1]
        ]
        yield name, "scalar", "", thinned(changed, points, _last)


def thinned(
    samples: Sequence[Point], points: int, settle: Callable[[Sequence[float]], float]
) -> list[Point]:
    """At most ``points`` of ``samples``, in equal stretches; what is no number is None."""
    size = max(1, math.ceil(len(samples) / max(1, points)))
    found: list[Point] = []
    for start in range(0, len(samples), size):
        group = samples[start : start + size]
        values = [value for _, value in group if value is not None and math.isfinite(value)]
        found.append((group[-1][0], settle(values) if values else None))
    return found
