"""Read the frames of ``--with`` that a job fetches as Parquet files, with the program's pyarrow."""

from __future__ import annotations

import importlib
import os
import shlex
import sys
from typing import Any, Mapping

from submarine_runtime.translation import _
from submarine_runtime.values.encoder import ValuesError


def read_frame(path: str, kind: str) -> Any:
    """Return the frame in the Parquet files of a directory: ``pandas`` or ``arrow``.

    Raises
    ------
    ValuesError
        If this Python has no pyarrow.
    """
    try:
        parquet = importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise ValuesError(
            _(
                "A frame of --with is stored as Parquet, and this Python has no pyarrow; type "
                "{python} -m pip install pyarrow"
            ).format(python=shlex.quote(sys.executable or "python3"))
        ) from None
    # Without partitioning: the path has no columns in it. The files are read in the order of names.
    table = parquet.read_table(path, partitioning=None)
    return table if kind == "arrow" else table.to_pandas()


def read_stored(
    stored: Mapping[str, tuple[str, str]], environ: Mapping[str, str]
) -> dict[str, Any]:
    """Return the frames of ``stored``; the variables of the inputs have their paths."""
    return {
        name: read_frame(os.path.abspath(environ["SUBMARINE_INPUT_" + one]), kind)
        for name, (one, kind) in stored.items()
    }
