"""The metrics of a job as a pandas DataFrame; only this module uses pandas."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from submarine_jobs.access import JobDirectory
from submarine_jobs.errors import SubmarineError
from submarine_jobs.outputs.metrics import Row, read_metrics
from submarine_runtime.translation import _

#: Columns of each frame, in this order, before one column per scalar.
COLUMNS = (
    "time",
    "task",
    "epoch",
    "attempt",
    "seconds",
    "cpu_percent",
    "memory",
    "gpu_percent",
    "gpu_memory",
    "progress",
)
#: Columns of numbers that may be missing.
_NUMBERS = COLUMNS[5:]


def metrics_frame(directory: JobDirectory, task: str | None = None) -> Any:
    """Return the metrics as a pandas DataFrame: ``COLUMNS``, then one column per scalar.

    Raises
    ------
    SubmarineError
        If pandas is not installed.
    """
    return frame_of(read_metrics(directory, task))


def frame_of(rows: Sequence[Row]) -> Any:
    """Return a pandas DataFrame of ``rows``; ``time`` is in UTC."""
    try:
        pandas = importlib.import_module("pandas")
    except ImportError as exc:
        raise SubmarineError(
            _("A DataFrame needs pandas, which is not installed here."),
            _(
                "Install it (pip install pandas), or use the list of rows: "
                "submarine_jobs.outputs.metrics.read_metrics(job.directory)."
            ),
        ) from exc
    scalars = list(dict.fromkeys(name for row in rows for name in row.scalars))
    columns: dict[str, list[Any]] = {name: [getattr(row, name) for row in rows] for name in COLUMNS}
    for name in scalars:
        # A scalar with the name of a fixed column must not replace it.
        column = f"{name}_" if name in COLUMNS else name
        columns[column] = [row.scalars.get(name) for row in rows]
    frame = pandas.DataFrame(columns, columns=list(columns))
    frame["time"] = pandas.to_datetime(frame["time"], unit="s", utc=True)
    for name in _NUMBERS:
        frame[name] = frame[name].astype(float)
    return frame
