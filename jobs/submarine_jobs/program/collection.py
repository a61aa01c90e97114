"""Collected cells of a notebook: content, order, and changes in the saved document.

The collection is independent of a kernel: the caller reports executed cells (``add``), deleted
cells (``remove``) and the saved document (``follow``).
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import Enum

from submarine_jobs.program.cell import Cell, Notice, notices_of
from submarine_jobs.program.cell_magic import parse_cell, writes_file
from submarine_jobs.program.document_order import (
    KnownCell,
    find_deleted,
    find_places,
    ids_were_replaced,
    normal_body,
    program_content,
)
from submarine_jobs.program.notebook_document import DocumentCell, NotebookDocument


class Change(Enum):
    """Effect of collecting a cell."""

    ADDED = "added"
    REPLACED = "replaced"
    UNCHANGED = "unchanged"


class CellState(Enum):
    """State of a collected cell relative to the saved document."""

    CURRENT = "current"
    EDITED = "edited since it ran"
    UNSAVED = "not saved yet"
    NO_DOCUMENT = ""


@dataclass(frozen=True)
class CollectResult:
    """Result of ``add``: the cell, the change, and warnings to show."""

    cell: Cell
    change: Change
    notices: tuple[Notice, ...] = ()


@dataclass(frozen=True)
class ListedCell:
    """Row of ``%submarine cells``."""

    cell: Cell
    state: CellState
    lines: int
    first_code: str


@dataclass
class _Entry:
    cell: Cell
    ran_at: float
    place: int | None = None
    #: Exception of the last run: ``ValueError in line 3``.
    raised: str = ""

    @property
    def known(self) -> KnownCell:
        return KnownCell(self.cell.cell_id, self.cell.content, self.place)


@dataclass
class CellCollection:
    """Collected cells of one notebook, in the order of the saved document.

    Cells that are not in the saved document follow in the order of their first execution; without a
    document this is the order of all cells.
    """

    _entries: list[_Entry] = field(default_factory=list)
    _document: NotebookDocument | None = None
    #: Ids that the user removed; the saved document may still contain them.
    _removed: set[str] = field(default_factory=set)

    def add(self, cell: Cell, *, ran_at: float | None = None) -> CollectResult:
        """Collect ``cell`` and replace an older version of it.

        Parameters
        ----------
        ran_at
            When it was executed, seconds since the epoch; default now.

        Raises
        ------
        IPythonSyntaxError
            If the cell contains IPython syntax that a program cannot; it is not collected.
        """
        notices = notices_of(cell)
        self._removed.discard(cell.cell_id or "")
        if cell.write_mode == "w":
            self._overwrite(cell)
        when = time.time() if ran_at is None else ran_at
        entry = self._entry_of(cell)
        if entry is None:
            self._entries.append(_Entry(cell, when))
            change = Change.ADDED
        else:
            same = entry.cell.content == cell.content
            change = Change.UNCHANGED if same else Change.REPLACED
            if cell.cell_id is None:
                cell = replace(cell, cell_id=entry.cell.cell_id)
            entry.cell, entry.ran_at, entry.raised = cell, when, ""
        self._place()
        return CollectResult(cell, change, notices)

    def remove(self, cell_ids: Iterable[str]) -> list[Cell]:
        """Remove the cells with these ids (deleted, or run again without mark and tag)."""
        ids = set(cell_ids)
        if self._document is not None:
            self._removed |= ids & {cell.cell_id or "" for cell in self._document.cells}
        return self._drop([entry.cell.cell_id in ids for entry in self._entries])

    def mark_raised(self, cell_id: str | None, label: str, raised: str) -> None:
        """Note that the run ``label`` of a collected cell ended with an exception."""
        for entry in self._entries:
            if entry.cell.label == label and cell_id in (None, entry.cell.cell_id):
                entry.raised = raised

    def raised(self) -> list[tuple[Cell, str]]:
        """Return the cells whose last run raised an exception, with the exception."""
        return [(entry.cell, entry.raised) for entry in self._ordered() if entry.raised]

    def clear(self) -> int:
        """Remove all cells and return their number."""
        count = len(self._entries)
        self._entries.clear()
        self._removed.clear()
        return count

    def follow(self, document: NotebookDocument | None) -> list[Cell]:
        """Use the order of the saved ``document`` and remove cells that were deleted from it.

        Returns
        -------
        list of Cell
            The removed cells. A document of None (it cannot be read) changes nothing.
        """
        if document is None:
            return []
        before, self._document = self._document, document
        if before is not None and before.path != document.path:
            # Another file does not show deletions from the previous one.
            for entry in self._entries:
                entry.place = None
        self._removed &= {cell.cell_id or "" for cell in document.cells}
        known = [entry.known for entry in self._entries]
        places = find_places(known, document.cells)
        if before is not None and ids_were_replaced(before.cells, document.cells):
            self._take_ids(places)
        deleted = find_deleted(known, places, before.cells if before else (), document.cells)
        for entry, place in zip(self._entries, places, strict=True):
            entry.place = place
        return self._drop(deleted)

    def lose_document(self) -> None:
        """Remove the document, because its path is unknown now; keep the order."""
        self._document = None

    def cells(self) -> list[Cell]:
        """Return the collected cells in program order."""
        return [entry.cell for entry in self._ordered()]

    def listing(self) -> list[ListedCell]:
        """Return the collected cells in program order with their states."""
        return [
            ListedCell(
                entry.cell,
                self._state(entry),
                len(entry.cell.source.split("\n")) if entry.cell.source else 0,
                next((line for line in entry.cell.source.split("\n") if line.strip()), ""),
            )
            for entry in self._ordered()
        ]

    def changed_since_run(self) -> list[Cell]:
        """Return cells that were edited and saved after they ran; the program has the old text."""
        return [row.cell for row in self.listing() if row.state is CellState.EDITED]

    def not_run(self) -> list[DocumentCell]:
        """Return the marked or tagged cells of the document that are not collected."""
        if self._document is None:
            return []
        collected = {entry.place for entry in self._entries}
        return [
            cell
            for number, cell in enumerate(self._document.cells)
            if number not in collected
            and cell.cell_id not in self._removed
            and program_content(cell) is not None
            and not writes_file(cell.source)
        ]

    @property
    def document(self) -> NotebookDocument | None:
        """The document followed last."""
        return self._document

    def __len__(self) -> int:
        return len(self._entries)

    def _entry_of(self, cell: Cell) -> _Entry | None:
        if cell.cell_id is not None:
            for entry in self._entries:
                if entry.cell.cell_id == cell.cell_id:
                    return entry
        for entry in self._entries:
            without_id = cell.cell_id is None or entry.cell.cell_id is None
            if without_id and entry.cell.content == cell.content:
                return entry
        return self._entry_in_place_of(cell)

    def _entry_in_place_of(self, cell: Cell) -> _Entry | None:
        """Return the entry at the place of ``cell`` in the document if its text differs."""
        if self._document is None:
            return None
        (place,) = find_places([KnownCell(cell.cell_id, cell.content)], self._document.cells)
        for entry in self._entries:
            if place is not None and entry.place == place:
                saved = program_content(self._document.cells[place])
                return entry if entry.cell.content != saved else None
        return None

    def _overwrite(self, cell: Cell) -> None:
        """Drop other ``%%writefile`` cells of the same file: ``cell`` replaces what they wrote."""
        for entry in list(self._entries):
            old = entry.cell
            if old.write_mode and old.filename == cell.filename and self._entry_of(cell) != entry:
                self._entries.remove(entry)

    def _take_ids(self, places: list[int | None]) -> None:
        """Update the ids of cells that were found by their text."""
        document = self._document
        for entry, place in zip(self._entries, places, strict=True):
            if document is not None and place is not None and entry.cell.cell_id is not None:
                entry.cell = replace(entry.cell, cell_id=document.cells[place].cell_id)

    def _place(self) -> None:
        """Find the places of new cells in the unchanged document."""
        if self._document is not None:
            found = find_places([entry.known for entry in self._entries], self._document.cells)
            for entry, place in zip(self._entries, found, strict=True):
                entry.place = entry.place if place is None else place

    def _drop(self, deleted: list[bool]) -> list[Cell]:
        dropped = [
            e.cell for e, is_deleted in zip(self._entries, deleted, strict=True) if is_deleted
        ]
        self._entries = [
            e for e, is_deleted in zip(self._entries, deleted, strict=True) if not is_deleted
        ]
        return dropped

    def _ordered(self) -> list[_Entry]:
        placed = [entry for entry in self._entries if entry.place is not None]
        placed.sort(key=lambda entry: entry.place or 0)
        return placed + [entry for entry in self._entries if entry.place is None]

    def _state(self, entry: _Entry) -> CellState:
        if self._document is None:
            return CellState.NO_DOCUMENT
        if entry.place is not None:
            saved = self._document.cells[entry.place]
            if program_content(saved) == entry.cell.content or _runs(saved, entry.cell):
                return CellState.CURRENT
            if self._document.modified > entry.ran_at:
                return CellState.EDITED
        return CellState.UNSAVED


def _runs(saved: DocumentCell, cell: Cell) -> bool:
    """Return whether ``saved`` is ``%%submarine run`` with the text of ``cell`` below it."""
    marked = parse_cell(saved.source, saved.tags)
    return marked is not None and normal_body(marked.body) == cell.content[1]
