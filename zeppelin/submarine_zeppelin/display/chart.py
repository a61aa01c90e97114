"""Draw training metrics as a small SVG without scripts.

Metrics come from the user's program and are untrusted: names are escaped, and numbers and lengths
are limited.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from submarine_jobs.outputs import Row
from submarine_jobs.text import escape_html_line

MAX_SERIES, MAX_POINTS = 4, 120
_WIDTH, _HEIGHT, _GAP = 190, 56, 16
_COLOURS = ("#2f81f7", "#d2a022", "#3fb950", "#c678dd")

Series = Mapping[str, Sequence[tuple[float, float]]]


class MetricHistory:
    """Scalars of a job, reduced to the points that a chart shows."""

    def __init__(self) -> None:
        self._points: dict[str, list[tuple[float, float]]] = {}
        self._task = ""

    def add(self, rows: Iterable[Row]) -> bool:
        """Add rows of the first task that has scalars, and return whether there were any."""
        added = False
        for row in rows:
            if not row.scalars or (self._task and row.task != self._task):
                continue
            self._task, added = row.task, True
            for name, value in row.scalars.items():
                if name in self._points or len(self._points) < MAX_SERIES:
                    self._put(self._points.setdefault(name, []), row.time, value)
        return added

    @property
    def series(self) -> Series:
        """Copy of the points by name: (time, value) in the order of time."""
        return {name: tuple(points) for name, points in self._points.copy().items()}

    def _put(self, points: list[tuple[float, float]], time: float, value: float) -> None:
        if not math.isfinite(value) or abs(value) > 1e15 or (points and points[-1][1] == value):
            return
        points.append((time, value))
        if len(points) > 2 * MAX_POINTS:
            # Keep every second point and the newest.
            points[:] = [*points[:-1:2], points[-1]]


def render_svg(series: Series) -> str:
    """Draw a row of small curves with names and newest values; return "" without points.

    If there is one point for each name, only the values are shown.
    """
    drawn = [(name, points) for name, points in series.items() if points][:MAX_SERIES]
    if not drawn:
        return ""
    if all(len(points) == 1 for _, points in drawn):
        words = " &nbsp; ".join(_words(name, points) for name, points in drawn)
        return f'<div style="font-size:12px">{words}</div>'
    width = len(drawn) * (_WIDTH + _GAP)
    parts = [
        _curve(name, points, number * (_WIDTH + _GAP), _COLOURS[number])
        for number, (name, points) in enumerate(drawn)
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{width}" '
        f'height="{_HEIGHT + 24}" viewBox="0 0 {width} {_HEIGHT + 24}" '
        f'style="width:{width}px;height:{_HEIGHT + 24}px;max-width:100%;'
        'font-family:system-ui,sans-serif;font-size:11px">'
        f"<title>Metrics of the job</title>{''.join(parts)}</svg>"
    )


def _curve(name: str, points: Sequence[tuple[float, float]], left: int, colour: str) -> str:
    times, values = [point[0] for point in points], [point[1] for point in points]
    low, high = min(values), max(values)
    start, span = times[0], (times[-1] - times[0]) or 1.0
    extent = (high - low) or 1.0
    coordinates = " ".join(
        f"{left + (time - start) / span * _WIDTH:.1f},{20 + (high - value) / extent * _HEIGHT:.1f}"
        for time, value in points
    )
    if len(points) == 1:
        shape = f'<circle cx="{left + 3}" cy="{20 + _HEIGHT / 2:.0f}" r="2.5" fill="{colour}"/>'
    else:
        shape = (
            f'<polyline points="{coordinates}" fill="none" stroke="{colour}" stroke-width="1.5"/>'
        )
    return (
        f'<text x="{left}" y="12" fill="currentColor">{_words(name, points)}</text>'
        f'<line x1="{left}" y1="{20 + _HEIGHT}" x2="{left + _WIDTH}" y2="{20 + _HEIGHT}" '
        f'stroke="#8b949e" stroke-opacity=".4"/>{shape}'
    )


def _words(name: str, points: Sequence[tuple[float, float]]) -> str:
    return f"{escape_html_line(name, 24)} {points[-1][1]:.4g}"
