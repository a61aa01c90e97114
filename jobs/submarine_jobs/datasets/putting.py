"""Put a value of a notebook or a program, or files, as a dataset."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TypeGuard

from submarine_jobs.datasets.spark import is_spark_frame, put_spark_frame
from submarine_jobs.datasets.staging import stage_files, stage_value
from submarine_jobs.datasets.store import DatasetStore, Progress, PutResult


def put_value(
    store: DatasetStore,
    name: str | None,
    value: object,
    progress: Progress = lambda done, total: None,
    *,
    replaces: bool = False,
) -> PutResult:
    """Put a frame, a table, arrays, or files by their paths.

    Parameters
    ----------
    name
        None: the content gets no name.
    value
        pandas or Spark DataFrame, Arrow table, NumPy array, dict of arrays, path, or list of paths.
    replaces
        Give the name to this content even if it belongs to another one.

    Raises
    ------
    UsageError
        If the value cannot be stored, or the name is invalid or belongs to other data.
    """
    if is_spark_frame(value):
        return put_spark_frame(store, name, value, replaces=replaces)
    if isinstance(value, (str, os.PathLike)):
        value = [value]
    if _are_paths(value):
        return store.put(name, stage_files(value), progress, replaces=replaces)
    with tempfile.TemporaryDirectory(prefix="submarine-data-") as folder:
        staged = stage_value(value, Path(folder))
        return store.put(name, staged, progress, replaces=replaces)


def _are_paths(value: object) -> TypeGuard[Sequence[str | os.PathLike[str]]]:
    return isinstance(value, (list, tuple)) and all(
        isinstance(item, (str, os.PathLike)) for item in value
    )
