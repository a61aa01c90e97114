"""Finding: the result of a check before a submit."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any

from submarine_jobs.program import Bundle
from submarine_runtime.translation import _


class Level(str, Enum):  # noqa: UP042 - str() must return the value, as in JSON
    """Severity of a finding.

    ``error``: the program would fail, and only ``--force`` submits it; ``warning``: it may fail or
    be outdated; ``note``: information.
    """

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class Finding:
    """The result of a check.

    Parameters
    ----------
    code
        Stable identifier: ``undefined-name``, ``syntax``, ``missing-import``, ...
    message
        One sentence: what is wrong and where.
    file, line
        Location in the program's files; lines start at 1.
    cell, cell_line
        Label of the cell and the line in it, if the location is in a cell.
    fix
        One sentence: how to fix it.
    """

    level: Level
    code: str
    message: str
    file: str | None = None
    line: int | None = None
    cell: str | None = None
    cell_line: int | None = None
    fix: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {**asdict(self), "level": self.level.value}


def place_of(bundle: Bundle, file: str, line: int) -> str:
    """Return a location: ``cell [3], line 4`` if it is in a cell, else ``a.py, line 4``."""
    position = bundle.source_map.lookup(file, line)
    if position is None:
        return _("{file}, line {line}").format(file=file, line=line)
    return _("cell {label}, line {line}").format(label=position.label, line=position.line)


def finding_at(
    bundle: Bundle, level: Level, code: str, message: str, file: str, line: int, fix: str = ""
) -> Finding:
    """A finding about a line of a file, with the cell behind it."""
    position = bundle.source_map.lookup(file, line)
    return Finding(
        level,
        code,
        message,
        file,
        line,
        position.label if position else None,
        position.line if position else None,
        fix,
    )
