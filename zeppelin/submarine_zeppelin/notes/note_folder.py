"""Directory of a note on Zeppelin's machine, with its exported notebook and workflows.

A workflow runs the notebook, which is exported each time a paragraph runs a workflow command.
"""

from __future__ import annotations

import re
from pathlib import Path

from submarine_jobs.config import make_private
from submarine_jobs.errors import UsageError
from submarine_runtime.files import replace_file
from submarine_runtime.translation import _
from submarine_zeppelin.notes.notebook_export import ExportedNotebook

_INVALID_CHARACTERS = re.compile(r"[^\w.-]+")
NOTEBOOK = ".ipynb"


def note_directory(state_dir: Path, note_id: str) -> Path:
    """Return the directory of a note."""
    return state_dir / "notes" / (_INVALID_CHARACTERS.sub("-", note_id).strip(".") or "note")


def notebook_stem(note_name: str, note_id: str) -> str:
    """Return the name of a note's notebook without suffix: the last part of the note's name."""
    name = note_name.rstrip("/").rpartition("/")[2]
    return _INVALID_CHARACTERS.sub("-", name).strip("-.")[:100] or note_id


def write_notebook(exported: ExportedNotebook, folder: Path, stem: str) -> Path:
    """Write a notebook and its files, except those that have not changed.

    Raises
    ------
    UsageError
        If a file cannot be written.
    """
    path = folder / (stem + NOTEBOOK)
    try:
        make_private(folder)
        for name, data in {**exported.files, path.name: exported.to_bytes()}.items():
            _write(folder / name, data)
    except OSError as error:
        where = error.filename or folder
        raise UsageError(
            _("{where} cannot be written: {strerror}.").format(
                where=where, strerror=error.strerror or error
            )
        ) from None
    return path


def _write(path: Path, data: bytes) -> None:
    if path.is_file() and path.read_bytes() == data:
        return
    make_private(path.parent)
    replace_file(path, data)
