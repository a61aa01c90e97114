"""The exception that ended a program, with its frames mapped to the notebook's cells.

Part of the job record (``record``).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Mapping

from submarine_runtime.protocol.fields import known


@dataclass
class TracebackFrame:
    """One frame of a failed program; ``cell`` and ``cell_line`` are set if it is in a cell."""

    file: str
    line: int
    function: str = ""
    code: str = ""
    cell: str | None = None
    cell_id: str | None = None
    cell_line: int | None = None


@dataclass
class Failure:
    """The exception that ended a program; the innermost frame is the last, as Python prints it."""

    type: str
    message: str
    frames: list[TracebackFrame] = field(default_factory=list)
    text: str = ""

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Failure:
        """Read what ``to_json`` wrote; unknown fields are ignored."""
        values = known(cls, data)
        values["frames"] = [
            TracebackFrame(**known(TracebackFrame, f)) for f in data.get("frames") or []
        ]
        return cls(**values)
