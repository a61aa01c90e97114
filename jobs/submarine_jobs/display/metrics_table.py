"""The table of metrics: one line for each task and metric, with its values over time as bars."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from submarine_jobs.display import columns
from submarine_jobs.display.columns import Table
from submarine_jobs.text import duration, memory, one_line
from submarine_runtime.protocol.layout import attempt_name
from submarine_runtime.translation import _, gettext_noop

if TYPE_CHECKING:
    from submarine_jobs.outputs import Row

BARS = "▁▂▃▄▅▆▇█"
#: Number of bars.
WIDTH = 40
#: Maximum number of attempts, each with a few lines.
MAX_SHOWN = 64
MAX_SCALARS = 6
HEADS = (
    gettext_noop("TASK"),
    gettext_noop("ATTEMPT"),
    gettext_noop("WHAT"),
    gettext_noop("COURSE"),
    gettext_noop("LAST"),
    gettext_noop("MEAN"),
    gettext_noop("MOST"),
)


class MetricLine(NamedTuple):
    """One metric of one attempt of a task."""

    task: str
    attempt: str
    what: str
    course: str
    last: str
    mean: str
    most: str


def table(rows: Sequence[Row]) -> Table:
    """Return the table of ``rows``, which are ordered by task, attempt and time."""
    attempts: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        name = attempt_name(row.epoch, row.attempt)
        attempts.setdefault((row.task, name), []).append(row)
    if not attempts:
        nothing = _(
            "Nothing has been measured yet: samples are there some seconds after a task has "
            "started."
        )
        return Table(nothing, f"<p>{nothing}</p>")
    shown = list(attempts.items())[:MAX_SHOWN]
    lines = [line for (task, name), found in shown for line in _lines(task, name, found)]
    more = len(attempts) - len(shown)
    note = (
        _("… and {more} more attempts of tasks; --task NAME chooses").format(more=more)
        if more
        else ""
    )
    words = [tuple(one_line(word, 80) for word in line) for line in lines]
    return Table(columns.text(HEADS, words, note), columns.html(HEADS, words, note))


def _lines(task: str, attempt: str, rows: Sequence[Row]) -> list[MetricLine]:
    took = duration(rows[-1].seconds)
    measures: list[tuple[str, Iterable[float | None], Callable[[float], str]]] = [
        (
            _("CPU, cores"),
            ((r.cpu_percent or 0.0) / 100 for r in rows[1:] or rows),
            "{:.2f}".format,
        ),
        (_("memory"), (r.memory for r in rows), memory),
        (_("GPU"), (r.gpu_percent for r in rows), "{:.0f} %".format),
        (_("GPU memory"), (r.gpu_memory for r in rows), memory),
        (_("progress"), (r.progress for r in rows), "{:.0%}".format),
    ]
    scalars = list(dict.fromkeys(name for row in rows for name in row.scalars))[:MAX_SCALARS]
    measures += [
        (name, [row.scalars.get(name) for row in rows], "{:.4g}".format) for name in scalars
    ]
    lines: list[MetricLine] = []
    for what, values, words in measures:
        there = [value for value in values if value is not None]
        if there:
            first = (task, f"{attempt} ({took})") if not lines else ("", "")
            lines.append(_line(first, what, there, words))
    return lines


def _line(
    first: tuple[str, str], what: str, values: Sequence[float], words: Callable[[float], str]
) -> MetricLine:
    finite = [value for value in values if math.isfinite(value)]
    mean = words(sum(finite) / len(finite)) if finite else "-"
    most = words(max(finite)) if finite else "-"
    return MetricLine(*first, what, course(values), words(values[-1]), mean, most)


def course(values: Sequence[float], width: int = WIDTH) -> str:
    """Return bars from 0, or the minimum if it is negative, to the maximum; ``!`` for no number."""
    groups = min(width, len(values))
    means = []
    for number in range(groups):
        part = values[number * len(values) // groups : (number + 1) * len(values) // groups]
        means.append(sum(part) / len(part))
    finite = [value for value in means if math.isfinite(value)]
    low, high = min([0.0, *finite]), max([0.0, *finite])
    top = len(BARS) - 1
    return "".join(
        BARS[round((value - low) / (high - low) * top) if high > low else 0]
        if math.isfinite(value)
        else "!"
        for value in means
    )
