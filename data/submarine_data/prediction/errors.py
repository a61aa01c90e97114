"""The error of a prediction."""

from __future__ import annotations

from submarine_data.errors import DataError


class PredictionError(DataError):
    """A part cannot be processed: one sentence with the part, the file and the row group."""
