"""The source map as the notebook's side knows it; the one implementation travels to containers.

Holds nothing of its own: see ``submarine_runtime.protocol.sourcemap`` for the form and the
functions.
"""

from __future__ import annotations

from submarine_runtime.protocol.sourcemap import (
    MAP_PATH,
    NOTEBOOK_PATH,
    CellPosition,
    Frame,
    Segment,
    SourceMap,
)

__all__ = ["MAP_PATH", "NOTEBOOK_PATH", "CellPosition", "Frame", "Segment", "SourceMap"]
