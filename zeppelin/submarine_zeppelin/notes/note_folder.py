"""A note's place on Zeppelin's machine: its notebook, and the workflows of its paragraphs.

What a workflow runs of a note is its notebook, as the note was when the workflow was last looked at
from it. Says where it lies; what is in it is ``exporting``'s matter.
"""

from __future__ import annotations

import os
import re
import secrets
from pathlib import Path

from submarine_jobs.config import make_private
from submarine_jobs.errors import UsageError
from submarine_zeppelin.notes.notebook_export import Exported

_UNFIT = re.compile(r"[^\w.-]+")
NOTEBOOK = ".ipynb"


def folder_of_note(state_dir: Path, note_id: str) -> Path:
    """Where the files of a note lie."""
    return state_dir / "notes" / (_UNFIT.sub("-", note_id).strip(".") or "note")


def stem_of(note_name: str, note_id: str) -> str:
    """The name of a note's notebook: the last part of the note's own."""
    name = note_name.rstrip("/").rpartition("/")[2]
    return _UNFIT.sub("-", name).strip("-.")[:100] or note_id


def keep(exported: Exported, folder: Path, stem: str) -> Path:
    """Write a note's notebook, and its files beside it; what is the same is not written again.

    Raises
    ------
    UsageError
        If it cannot be written.
    """
    path = folder / (stem + NOTEBOOK)
    try:
        make_private(folder)
        for name, data in {**exported.files, path.name: exported.to_bytes()}.items():
            _write(folder / name, data)
    except OSError as error:
        where = error.filename or folder
        raise UsageError(f"{where} cannot be written: {error.strerror or error}.") from None
    return path


def _write(path: Path, data: bytes) -> None:
    if path.is_file() and path.read_bytes() == data:
        return
    make_private(path.parent)
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        part.write_bytes(data)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
