"""Find the document of the kernel's notebook, also after it was renamed in its directory.

Front ends do not report a rename to the kernel, and most notebooks are first saved as
``Untitled.ipynb``. A renamed notebook is recognized by the ids of its cells. A notebook that was
moved to another directory is not found.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Set
from pathlib import Path
from typing import Any

from submarine_jobs.program import NotebookError, read_notebook

#: Notebooks of a directory that are read, newest first, and their largest size.
MAX_FILES = 50
MAX_BYTES = 20 << 20


def document_path(namespace: Mapping[str, Any]) -> Path | None:
    """Return the path of the notebook; None if it is unknown or there is no such file."""
    return next((path for path in reported_paths(namespace) if path.is_file()), None)


def reported_paths(namespace: Mapping[str, Any]) -> list[Path]:
    """Return the paths that the front end has reported, which may be outdated.

    VS Code sets ``__vsc_ipynb_file__`` in the namespace. jupyter-server starts kernels with
    ``JPY_SESSION_NAME``, which does not change when the document is renamed.
    """
    reported = (namespace.get("__vsc_ipynb_file__"), os.environ.get("JPY_SESSION_NAME"))
    return [Path(word) for word in reported if isinstance(word, str) and word.endswith(".ipynb")]


class RenamedDocument:
    """Search for the renamed notebook of one kernel. Unchanged directories are searched once."""

    def __init__(self) -> None:
        self._found: Path | None = None
        self._searched: tuple[object, ...] = ()

    def find(self, reported: Path | None, cell_ids: Set[str]) -> Path | None:
        """Return the newest notebook in the same directory that contains one of the cells.

        Parameters
        ----------
        reported
            The former path of the notebook.
        cell_ids
            Ids of cells that ran in this kernel.
        """
        if self._found is not None and self._found.is_file():
            return self._found
        self._found = None
        if reported is None or not cell_ids:
            return None
        files = _notebooks(reported.parent)
        search = (frozenset(cell_ids), *files)
        if search == self._searched:
            return None
        self._searched = search
        self._found = next((path for _, path in files if _contains(path, cell_ids)), None)
        return self._found


def _notebooks(directory: Path) -> list[tuple[int, Path]]:
    """Return modification time and path of notebooks, newest first."""
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


def _contains(path: Path, cell_ids: Set[str]) -> bool:
    try:
        return any(cell.cell_id in cell_ids for cell in read_notebook(path).cells)
    except (OSError, NotebookError):
        return False
