"""Build a bundle from notebook cells or files."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submarine_jobs.program.cell import Cell as Cell, join_labels as join_labels
    from submarine_jobs.program.cell_magic import (
        MAGIC as MAGIC,
        ONLY_TAG as ONLY_TAG,
        MarkedCell as MarkedCell,
        cell_verbs as cell_verbs,
        parse_cell as parse_cell,
        parse_options as parse_options,
        starts_job as starts_job,
        tags_of_metadata as tags_of_metadata,
        tags_to_line as tags_to_line,
        writes_file as writes_file,
    )
    from submarine_jobs.program.collection import (
        CellCollection as CellCollection,
        CellState as CellState,
        CollectResult as CollectResult,
        ListedCell as ListedCell,
    )
    from submarine_jobs.program.file_names import (
        PROGRAM as PROGRAM,
        check_file_name as check_file_name,
        package_files as package_files,
    )
    from submarine_jobs.program.ipython_syntax import (
        clean_source as clean_source,
        parse_python as parse_python,
    )
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
            "cell": (
                "Cell",
                "join_labels",
            ),
            "cell_magic": (
                "MAGIC",
                "MarkedCell",
                "ONLY_TAG",
                "cell_verbs",
                "parse_cell",
                "parse_options",
                "starts_job",
                "tags_of_metadata",
                "tags_to_line",
                "writes_file",
            ),
            "collection": (
                "CellCollection",
                "CellState",
                "CollectResult",
                "ListedCell",
            ),
            "file_names": (
                "PROGRAM",
                "check_file_name",
                "package_files",
            ),
            "ipython_syntax": (
                "clean_source",
                "parse_python",
            ),
            "job_bundle": (
                "Bundle",
                "build_bundle",
            ),
            "merging": ("merge_cells",),
            "notebook_document": (
                "DocumentCell",
                "NotebookError",
                "read_notebook",
            ),
            "scripts": ("bundle_from_file",),
        },
    )
