"""Finds a notebook again that was renamed in its directory after the kernel started.

Front ends do not tell a kernel of it, and most notebooks begin as ``Untitled.ipynb``. The notebook
is known by the ids of its cells. One that was moved to another directory is not found.
"""

from __future__ import annotations

import os
from collections.abc import Set
from pathlib import Path

from submarine_jobs.program import NotebookError, read_notebook

#: Most notebooks of a directory that are looked into, newest first, and their largest size.
MAX_FILES = 50
MAX_BYTES = 20 << 20


class RenamedDocument:
    """What became of one kernel's notebook."""

    def __init__(self) -> None:
        self._found: Path | None = None
        self._looked_at: tuple[object, ...] = ()

    def find(self, told: Path | None, cell_ids: Set[str]) -> Path | None:
        """The newest notebook beside ``told`` that holds one of these cells.

        Parameters
        ----------
        told
            Where the notebook was; no longer there.
        cell_ids
            Ids of cells that ran in this kernel.
        """
        if self._found is not None and self._found.is_file():
            return self._found
        self._found = None
        if told is None or not cell_ids:
            return None
        files = _notebooks(told.parent)
        looked_at = (frozenset(cell_ids), *files)
        if looked_at == self._looked_at:
            return None
        self._looked_at = looked_at
        self._found = next((path for _, path in files if _holds(path, cell_ids)), None)
        return self._found


def _notebooks(directory: Path) -> list[tuple[int, Path]]:
    """Time of change and path, newest first."""
    found = []
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                if entry.name.endswith(".ipynb") and entry.is_file():
                    status = entry.stat()
                    if status.st_size <= MAX_BYTES:
                        found.append((status.st_mtime_ns, Path(entry.path)))
    except OSError:
        return []
    return sorted(found, reverse=True)[:MAX_FILES]


def _holds(path: Path, cell_ids: Set[str]) -> bool:
    try:
        return any(cell.cell_id in cell_ids for cell in read_notebook(path).cells)
    except (OSError, NotebookError):
        return False
