"""From notebook cells to a bundle: collection, merging, IPython syntax, documents, source map."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_jobs.program.cell import Cell as Cell, named_labels as named_labels
    from submarine_jobs.program.cell_entry_points import cell_verbs as cell_verbs
    from submarine_jobs.program.cells import CellCollection as CellCollection
    from submarine_jobs.program.collect_line import (
        MAGIC as MAGIC,
        ONLY_TAG as ONLY_TAG,
        MarkedCell as MarkedCell,
        line_of_tags as line_of_tags,
        parse_cell as parse_cell,
        parse_options as parse_options,
        starts_job as starts_job,
        tags_in as tags_in,
        writes_file as writes_file,
    )
    from submarine_jobs.program.collected import (
        CellState as CellState,
        Collected as Collected,
        ListedCell as ListedCell,
    )
    from submarine_jobs.program.file_names import (
        PROGRAM as PROGRAM,
        check_file_name as check_file_name,
        package_files as package_files,
    )
    from submarine_jobs.program.ipython_syntax import clean as clean, parse as parse
    from submarine_jobs.program.job_bundle import Bundle as Bundle, build_bundle as build_bundle
    from submarine_jobs.program.merging import merge_cells as merge_cells
    from submarine_jobs.program.notebook_document import (
        DocumentCell as DocumentCell,
        NotebookError as NotebookError,
        read_notebook as read_notebook,
    )
    from submarine_jobs.program.scripts import bundle_from_file as bundle_from_file
else:
    from submarine_runtime.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "cell": ("Cell", "named_labels"),
            "cell_entry_points": ("cell_verbs",),
            "cells": ("CellCollection",),
            "collect_line": (
                "MAGIC",
                "MarkedCell",
                "ONLY_TAG",
                "line_of_tags",
                "parse_cell",
                "parse_options",
                "starts_job",
                "tags_in",
                "writes_file",
            ),
            "collected": ("CellState", "Collected", "ListedCell"),
            "file_names": ("PROGRAM", "check_file_name", "package_files"),
            "ipython_syntax": ("clean", "parse"),
            "job_bundle": ("Bundle", "build_bundle"),
            "merging": ("merge_cells",),
            "notebook_document": ("DocumentCell", "NotebookError", "read_notebook"),
            "scripts": ("bundle_from_file",),
        },
    )
