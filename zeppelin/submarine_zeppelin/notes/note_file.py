"""A note from a file: Zeppelin's own format, ``.zpln`` or the older ``note.json``.

Reads what the server has saved or its page exports; untrusted. What is made of it is
``exporting``'s matter.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from submarine_jobs.errors import UsageError
from submarine_zeppelin.interface import NoteParagraph
from submarine_zeppelin.notes.note import GROUP, Paragraph, Spellings, read_note

_MOST = 64 << 20


class NoteFile(NamedTuple):
    """A note as its file has it."""

    note_id: str
    name: str
    paragraphs: list[Paragraph]


def read_note_file(path: Path) -> NoteFile:
    """The note in a file.

    Raises
    ------
    UsageError
        If it cannot be read, or is no note.
    """
    try:
        if path.stat().st_size > _MOST:
            raise UsageError(f"{path} is larger than {_MOST >> 20} MiB.", "Clear its outputs.")
        found = json.loads(path.read_bytes())
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}.") from None
    except (ValueError, RecursionError):
        raise _none(path) from None
    listed = found.get("paragraphs") if isinstance(found, dict) else None
    if not isinstance(listed, list):
        raise _none(path)
    note_id = _text(found.get("id")) or path.stem
    spellings = Spellings(bare=_text(found.get("defaultInterpreterGroup")) == GROUP)
    paragraphs = [
        NoteParagraph(
            note_id,
            _text(one.get("id")) or f"paragraph-{number}",
            _text(one.get("title")),
            _text(one.get("text")),
        )
        for number, one in enumerate(listed, start=1)
        if isinstance(one, dict)
    ]
    name = _text(found.get("name")) or path.stem
    return NoteFile(note_id, name, read_note(paragraphs, spellings))


def _none(path: Path) -> UsageError:
    return UsageError(f"{path} is no note of Zeppelin.", "Name a .zpln file, or export the note.")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
