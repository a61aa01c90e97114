"""Collected cells of a running kernel, the document and the modules that cells make."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_magics.cells.collected_modules import CollectedModules as CollectedModules
    from submarine_magics.cells.document import (
        RenamedDocument as RenamedDocument,
        document_path as document_path,
        reported_paths as reported_paths,
    )
    from submarine_magics.cells.notebook_cells import NotebookCells as NotebookCells
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "collected_modules": ("CollectedModules",),
            "document": (
                "RenamedDocument",
                "document_path",
                "reported_paths",
            ),
            "notebook_cells": ("NotebookCells",),
        },
    )
