"""Convert samples of a job to ``ISeries``: one per task, attempt and quantity, downsampled."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from submarine_jobs.outputs import Row
from submarine_jobs.text import one_line
from submarine_runtime.protocol.layout import attempt_name

#: Maximum number of series, of scalars per attempt, and length of a name.
MAX_SERIES = 2000
MAX_SCALARS = 24
MAX_NAME = 64
Point = tuple[float, float | None]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _last(values: Sequence[float]) -> float:
    return values[-1]


#: Quantity -> unit, and the function that combines samples. Memory uses the maximum to keep peaks.
_RESOURCES: dict[str, tuple[str, Callable[[Sequence[float]], float]]] = {
    "cpu_percent": ("%", _mean),
    "memory": ("MiB", max),
    "gpu_percent": ("%", _mean),
    "gpu_memory": ("MiB", max),
    "progress": ("", _last),
}


def series_json(rows: Iterable[Row], points: int) -> list[dict[str, Any]]:
    """Return ``ISeries[]`` of sorted rows with at most ``points`` points each."""
    attempts: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        attempts.setdefault((row.task, attempt_name(row.epoch, row.attempt)), []).append(row)
    found: list[dict[str, Any]] = []
    for (task, attempt), samples in attempts.items():
        for name, kind, unit, curve in _curves(samples, points):
            if len(found) >= MAX_SERIES:
                return found
            found.append(
                {
                    "task": task,
                    "attempt": attempt,
                    "name": one_line(name, MAX_NAME),
                    "kind": kind,
                    "unit": unit,
                    "t": [round(time, 3) for time, _ in curve],
                    "v": [value for _, value in curve],
                }
            )
    return found


def _curves(rows: list[Row], points: int) -> Iterable[tuple[str, str, str, list[Point]]]:
    for name, (unit, combine) in _RESOURCES.items():
        curve = downsampled([(row.time, getattr(row, name)) for row in rows], points, combine)
        if any(value is not None for _, value in curve):
            yield name, "resource", unit, curve
    scalars = list(dict.fromkeys(name for row in rows for name in row.scalars))
    for name in scalars[:MAX_SCALARS]:
        samples = [(row.time, row.scalars[name]) for row in rows if name in row.scalars]
        # Keep only changes: a scalar has the same value in many samples.
        changed = [
            sample
            for number, sample in enumerate(samples)
            if number in (0, len(samples) - 1) or sample[1] != samples[number - 1][1]
        ]
        yield name, "scalar", "", downsampled(changed, points, _last)


def downsampled(
    samples: Sequence[Point], points: int, combine: Callable[[Sequence[float]], float]
) -> list[Point]:
    """Combine ``samples`` into ``points`` equal intervals; non-finite values become None."""
    size = max(1, math.ceil(len(samples) / max(1, points)))
    found: list[Point] = []
    for start in range(0, len(samples), size):
        group = samples[start : start + size]
        values = [value for _, value in group if value is not None and math.isfinite(value)]
        found.append((group[-1][0], combine(values) if values else None))
    return found
