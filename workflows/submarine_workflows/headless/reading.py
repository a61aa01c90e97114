"""A notebook document from a place, in nbformat's newest form; refuses what is none."""

from __future__ import annotations

import json
import warnings

import nbformat
from nbformat import NotebookNode

from submarine_jobs.display.untrusted import printable
from submarine_jobs.notebook import NotebookError
from submarine_workflows.headless.place import Place


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
        if not all(isinstance(cell.source, str) for cell in document.cells):
            raise TypeError
    except Exception:  # whatever nbformat stumbles over, the document is at fault
        raise NotebookError(
            f"{shown} is not a notebook that nbformat can read.", "Save it from Jupyter again."
        ) from None
    return document, version >= (4, 5) and all(cell.get("id") for cell in raw["cells"])
