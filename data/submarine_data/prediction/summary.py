"""The parts of each worker, and the manifest of all parts.

Each worker stores a summary of its parts beside them. Worker 0 waits for the summaries of the
others and writes the manifest. Sums are added in the order of the parts, so the metrics do not
depend on the number of workers or on restarts.
"""

from __future__ import annotations

import hashlib
import json
import math
from typing import Any, BinaryIO, Sequence

from submarine_data.errors import DataError
from submarine_data.prediction.errors import PredictionError
from submarine_data.prediction.part_files import PartResult
from submarine_runtime.translation import _

#: The manifest; Hive, Spark and pyarrow ignore the name.
MANIFEST = "_predictions.json"
VERSION = 1


def summary_name(rank: int) -> str:
    """Return the name of a worker's summary."""
    return f"_summary-{rank:05d}.json"


def summary_bytes(parts: Sequence[PartResult]) -> bytes:
    """Return the summary of a worker's parts."""
    return json.dumps({"version": VERSION, "parts": [part._asdict() for part in parts]}).encode()


def read_summary(file: BinaryIO) -> list[PartResult]:
    """Return the parts of a summary."""
    return [PartResult(**part) for part in json.loads(file.read())["parts"]]


def check_same_columns(parts: Sequence[PartResult]) -> None:
    """Compare the columns of parts.

    Raises
    ------
    PredictionError
        If two parts have different columns or types.
    """
    first = next((part for part in parts if part.schema), None)
    for part in parts:
        if first is not None and part.schema and part.schema != first.schema:
            raise PredictionError(
                _(
                    "{name} has the columns {found}, and {first} has {expected}: predict must "
                    "return the same columns and types for each batch."
                ).format(name=part.name, found=part.schema, first=first.name, expected=first.schema)
            )


def manifest_of(parts: Sequence[PartResult]) -> dict[str, Any]:
    """Return the manifest of all parts, in order.

    Returns
    -------
    dict
        ``rows``, ``bytes``, ``digest`` (SHA-256 over the lines ``NAME SHA256`` of the parts),
        ``schema``, ``metrics`` (means over the rows) and ``parts``.
    """
    check_same_columns(parts)
    rows = sum(part.rows for part in parts)
    digest = hashlib.sha256()
    for part in parts:
        if part.sha256:
            digest.update(f"{part.name} {part.sha256}\n".encode())
    names = list(dict.fromkeys(name for part in parts for name in part.metrics))
    lacking = [p.name for p in parts for name in names if p.rows and name not in p.metrics]
    if lacking:
        raise PredictionError(
            _("evaluate returned other metrics for {part} than for other parts.").format(
                part=lacking[0]
            )
        )
    return {
        "version": VERSION,
        "rows": rows,
        "bytes": sum(part.bytes for part in parts),
        "digest": digest.hexdigest(),
        "schema": next((part.schema for part in parts if part.schema), ""),
        "metrics": {
            name: math.fsum(part.metrics[name] for part in parts if part.rows) / rows
            for name in names
        },
        "parts": [
            {
                "name": part.name,
                "rows": part.rows,
                "bytes": part.bytes,
                "sha256": part.sha256,
                "metrics": {name: value / part.rows for name, value in part.metrics.items()},
            }
            for part in parts
            if part.sha256
        ],
    }


def is_missing(error: DataError) -> bool:
    """Return whether an error says that a file does not exist."""
    return isinstance(error, FileNotFoundError) or isinstance(error.__cause__, FileNotFoundError)
