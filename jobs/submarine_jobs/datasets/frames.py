"""Frames as input and result of a job that this process waits for."""

from __future__ import annotations

import importlib
import tempfile
from pathlib import Path
from typing import Any

from submarine_jobs.datasets.spark import is_spark_frame
from submarine_jobs.extras import require_extra
from submarine_jobs.storage import Storage


def is_frame(value: object) -> bool:
    """Return whether ``value`` is a pandas or Spark DataFrame, or an Arrow table."""
    module = type(value).__module__.partition(".")[0]
    name = type(value).__name__
    return is_spark_frame(value) or (module, name) in (
        ("pandas", "DataFrame"),
        ("pyarrow", "Table"),
    )


def without_index(frame: Any) -> Any:
    """Return a frame whose rows have no labels: a job gets columns only."""
    return frame.reset_index(drop=True) if type(frame).__module__.startswith("pandas") else frame


def read_results(storage: Storage, path: str, like: Any) -> Any:
    """Return the Parquet files of a directory as a frame of the same kind as ``like``.

    A pandas frame with as many rows as ``like`` gets its index: the rows have the same order. The
    Spark session of ``like`` reads the directory itself, later.
    """
    if is_spark_frame(like):
        return like.sparkSession.read.parquet(storage.url(path))
    require_extra("data")
    arrow, parquet = (importlib.import_module(name) for name in ("pyarrow", "pyarrow.parquet"))
    names = [name for name, _size in storage.walk(path) if name.startswith("part-")]
    tables = []
    with tempfile.TemporaryDirectory(prefix="submarine-frame-") as scratch:
        for name in sorted(names):
            target = Path(scratch, "part.parquet")
            storage.download(f"{path}/{name}", target)
            tables.append(parquet.read_table(target, memory_map=False))
            target.unlink()
    table = arrow.concat_tables(tables) if tables else arrow.table({})
    if not type(like).__module__.startswith("pandas"):
        return table
    frame = table.to_pandas()
    return frame.set_index(like.index) if len(frame) == len(like) else frame
