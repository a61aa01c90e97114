"""Read and validate a notebook document in nbformat's current version."""

from __future__ import annotations

import json
import warnings

import nbformat
from nbformat import NotebookNode

from submarine_jobs.program import NotebookError
from submarine_jobs.text import printable
from submarine_workflows.locations import Place


def read_document(place: Place) -> tuple[NotebookNode, bool]:
    """Return the document, and whether its cells had ids.

    Raises
    ------
    UsageError
        If it does not exist or is not a notebook.
    StorageError
        If the storage does not answer.
    """
    data = place.read()
    shown = printable(place.url, 200)
    try:
        raw = json.loads(data)
        version = (int(raw["nbformat"]), int(raw.get("nbformat_minor", 0)))
    except (ValueError, TypeError, KeyError, RecursionError):
        raise NotebookError(f"{shown} is not a notebook.", "Save it from Jupyter again.") from None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            document: NotebookNode = nbformat.reads(data.decode("utf-8"), as_version=4)
            document = nbformat.v4.upgrade(document) or document
            # Documents of format 3 have another class, which papermill takes for a path.
            document = nbformat.from_dict(document)
        if not all(isinstance(cell.source, str) for cell in document.cells):
            raise TypeError
        _settle_metadata(document)
    except Exception:  # any error of nbformat means an invalid document
        raise NotebookError(
            f"{shown} is not a notebook that nbformat can read.", "Save it from Jupyter again."
        ) from None
    return document, version >= (4, 5) and all(cell.get("id") for cell in raw["cells"])


def _settle_metadata(document: NotebookNode) -> None:
    """Remove metadata of unexpected types; only the cells are required."""
    kernelspec = document.metadata.get("kernelspec")
    if not isinstance(kernelspec, dict) or not isinstance(kernelspec.get("name", ""), str):
        document.metadata.pop("kernelspec", None)
    for key in ("language_info", "papermill"):
        if not isinstance(document.metadata.get(key), dict):
            document.metadata.pop(key, None)
    for cell in document.cells:
        for key, kind in (("papermill", dict), ("tags", list)):
            if not isinstance(cell.metadata.get(key), kind):
                cell.metadata.pop(key, None)
