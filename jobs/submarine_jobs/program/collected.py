"""What collecting and listing cells answer; data only, ``cells`` makes it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from submarine_jobs.program.cell import Cell, Notice


class Change(Enum):
    """What collecting a cell did."""

    ADDED = "added"
    REPLACED = "replaced"
    UNCHANGED = "unchanged"


class CellState(Enum):
    """How a collected cell stands against the saved document."""

    CURRENT = "current"
    EDITED = "edited since it ran"
    UNSAVED = "not saved yet"
    NO_DOCUMENT = ""


@dataclass(frozen=True)
class Collected:
    """The answer to ``add``: the cell, what happened, and warnings to show."""

    cell: Cell
    change: Change
    notices: tuple[Notice, ...] = ()


@dataclass(frozen=True)
class ListedCell:
    """A row of ``%submarine cells``."""

    cell: Cell
    state: CellState
    lines: int
    first_code: str
