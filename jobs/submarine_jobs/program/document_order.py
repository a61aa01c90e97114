"""Find collected cells in a saved document, by cell id or else by source and order."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from submarine_jobs.errors import UsageError
from submarine_jobs.program.cell_magic import parse_cell, parse_options
from submarine_jobs.program.notebook_document import DocumentCell

# Identity of the text of a cell: file name and body without trailing blank lines.
Content = tuple[str, str]


class KnownCell(NamedTuple):
    """Data of a collected cell to find it; ``place`` is its previous index."""

    cell_id: str | None
    content: Content
    place: int | None = None


def program_content(cell: DocumentCell) -> Content | None:
    """Return what running the cell would collect, or None.

    None for a cell without mark and tag, with an invalid or empty mark, and for ``%%submarine
    run``.
    """
    marked = parse_cell(cell.source, cell.tags)
    if marked is None:
        return None
    try:
        options = parse_options(marked.line)
    except UsageError:
        return None
    body = normal_body(marked.body)
    return (options.filename, body) if options.verb is None and body.strip() else None


def normal_body(text: str) -> str:
    """Return a cell's text with plain newlines and without blank lines at its end."""
    return text.replace("\r\n", "\n").replace("\r", "\n").rstrip()


def find_places(known: Sequence[KnownCell], document: Sequence[DocumentCell]) -> list[int | None]:
    """Return the index in ``document`` of each collected cell, or None; indices are unique."""
    by_id = {cell.cell_id: n for n, cell in reversed(list(enumerate(document))) if cell.cell_id}
    places = [by_id.get(cell.cell_id) if cell.cell_id else None for cell in known]
    used = {place for place in places if place is not None}
    free: dict[Content, list[int]] = {}
    for number in range(len(document) - 1, -1, -1):
        if number not in used and (content := program_content(document[number])) is not None:
            free.setdefault(content, []).append(number)
    for number, cell in enumerate(known):
        if places[number] is None and free.get(cell.content):
            places[number] = free[cell.content].pop()
    return places


def ids_were_replaced(old: Sequence[DocumentCell], new: Sequence[DocumentCell]) -> bool:
    """Return whether another tool wrote the document with new ids for all cells.

    Checking out another version, or writing the notebook from a text file, can do that.
    """
    before = {cell.cell_id for cell in old if cell.cell_id}
    after = {cell.cell_id for cell in new if cell.cell_id}
    return bool(before and after) and not before & after


def find_deleted(
    known: Sequence[KnownCell],
    places: list[int | None],
    old: Sequence[DocumentCell],
    new: Sequence[DocumentCell],
) -> list[bool]:
    """Return for each cell whether it was removed between the ``old`` and the ``new`` document.

    A cell that was not saved is not removed. A cell without an id, whose text does not exist any
    more, is removed if it was deleted, if the cell in its place is collected (it was edited and run
    again), or if that cell is not marked. Otherwise it was edited and not run yet: it is kept, and
    its new index is written to ``places``.
    """
    lost = [n for n, cell in enumerate(known) if cell.place is not None and places[n] is None]
    removed = [False] * len(known)
    if not lost:
        return removed
    now_at = _new_indices([cell.source for cell in old], [cell.source for cell in new])
    used = {place for place in places if place is not None}
    for number in lost:
        cell = known[number]
        if cell.place is None or cell.place >= len(old):
            continue
        now = now_at.get(cell.place)
        by_id = cell.cell_id is not None and old[cell.place].cell_id == cell.cell_id
        if by_id or now is None or now in used or program_content(new[now]) is None:
            removed[number] = True
        else:
            places[number] = now
    return removed


def _new_indices(old: list[str], new: list[str]) -> dict[int, int]:
    """Return old index -> new index; edited cells by their position between unchanged ones."""
    found: dict[int, int] = {}
    matcher = SequenceMatcher(a=old, b=new, autojunk=False)
    for tag, old_start, old_end, new_start, new_end in matcher.get_opcodes():
        if tag in ("equal", "replace"):
            for offset in range(min(old_end - old_start, new_end - new_start)):
                found[old_start + offset] = new_start + offset
    return found
