"""A notebook document from a place, in nbformat's newest form; refuses what is none."""

from __future__ import annotations

import json
import warnings

import nbformat
from nbformat import NotebookNode

from submarine_jobs.program import NotebookError
from submarine_jobs.text import printable
from submarine_workflows.locations import Place


def read_document(place: Place) -> tuple[NotebookNode, bool]:
    """The document, and whether its cells had ids of their own.

    Raises
    ------
    UsageError
        If there is none, or it is no notebook.
    StorageError
        If nobody answers.
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
            # What was of format 3 is of a class of its own, which papermill takes for a path.
            document = nbformat.from_dict(document)
        if not all(isinstance(cell.source, str) for cell in document.cells):
            raise TypeError
        _settle_metadata(document)
    except Exception:  # whatever nbformat stumbles over, the document is at fault
        raise NotebookError(
            f"{shown} is not a notebook that nbformat can read.", "Save it from Jupyter again."
        ) from None
    return document, version >= (4, 5) and all(cell.get("id") for cell in raw["cells"])


def _settle_metadata(document: NotebookNode) -> None:
    """Leave out metadata of another form than papermill and we take it for; the cells count."""
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
