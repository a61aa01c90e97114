"""Stage a frame of ``--with`` only if a program reads exactly the same frame from the files.

Parquet loses some properties of a pandas frame: the object type of a column of texts, the frequency
of an index, the unit of some times. The files are therefore read back and compared.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

from submarine_jobs.datasets.staging import StagedContent, arrow_table, stage_table
from submarine_jobs.errors import UsageError
from submarine_jobs.extras import MissingExtraError
from submarine_runtime.values import read_frame

#: Size in memory from which a pandas frame of ``--with`` is a file of its own. Measured on 2 cores
#: with pyarrow's defaults: a numeric frame of 10 MB takes 0.03 s in values.zip and 0.45 s as
#: Parquet with the comparison; a larger one would be packed and uploaded again for each job.
THRESHOLD = 16 << 20


def is_exact_candidate(value: object) -> bool:
    """Return whether a value of ``--with`` may be stored as Parquet.

    This holds for a large pandas frame and, because values.zip has no form for them, for each
    Arrow table.
    """
    pandas, arrow = sys.modules.get("pandas"), sys.modules.get("pyarrow")
    if arrow is not None and type(value) is arrow.Table:
        return True
    if pandas is None or type(value) is not pandas.DataFrame:
        return False
    frame: Any = value
    return int(frame.memory_usage(index=True, deep=True).sum()) >= THRESHOLD


def stage_exact_frame(value: Any, folder: Path) -> StagedContent | None:
    """Write a pandas frame or an Arrow table to ``folder``; None if the files do not preserve it.

    None also without pyarrow on this machine.
    """
    try:
        table, source = arrow_table(value)
        staged = stage_table(table, source, folder)
    except (UsageError, MissingExtraError):
        return None
    restored = read_frame(str(folder), source)
    same = _equal_tables(table, restored) if source == "arrow" else _equal_frames(value, restored)
    return staged if same else None


def _equal_tables(table: Any, restored: Any) -> bool:
    """Compare values and metadata; the width of text types and names in lists may differ."""
    arrow = importlib.import_module("pyarrow")
    try:
        same = restored.cast(table.schema).equals(table)
    except (arrow.ArrowException, ValueError):
        return False
    return bool(same and restored.schema.metadata == table.schema.metadata)


def _equal_frames(frame: Any, restored: Any) -> bool:
    testing = importlib.import_module("pandas.testing")
    try:
        testing.assert_frame_equal(
            frame,
            restored,
            check_exact=True,
            check_index_type="exact",
            check_column_type="equiv",
            check_freq=True,
            check_flags=True,
        )
    except (AssertionError, TypeError, ValueError):
        return False
    return bool(frame.attrs == restored.attrs)
