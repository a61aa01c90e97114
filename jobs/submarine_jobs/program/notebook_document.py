"""Read a notebook document: its code cells in order, and a snapshot without outputs.

nbformat converts versions 3 and 4, with and without cell ids.
"""

from __future__ import annotations

import json
import os
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from submarine_jobs.errors import UsageError
from submarine_jobs.program.cell_magic import tags_of_metadata
from submarine_runtime.translation import _

MAX_BYTES = 256 * 1024 * 1024


class NotebookError(UsageError):
    """The document cannot be read: it is missing, too large, or not a notebook."""


@dataclass(frozen=True)
class DocumentCell:
    """A code cell of a saved document, or one from the history of executed cells.

    ``label`` is the displayed name: ``[3]`` for an executed cell, else its number among all cells
    of the document, ``#4``.
    """

    cell_id: str | None
    source: str
    label: str
    execution_count: int | None = None
    tags: tuple[str, ...] = ()
    #: Type of the exception in the saved outputs; empty if there is none.
    raised: str = ""


@dataclass(frozen=True)
class NotebookDocument:
    """A document as it was saved at ``modified`` (seconds since the epoch)."""

    path: str
    cells: tuple[DocumentCell, ...]
    snapshot: bytes = field(repr=False)
    modified: float = 0.0
    language: str = "python"


def read_notebook(path: str | os.PathLike[str]) -> NotebookDocument:
    """Read the document at ``path``.

    Raises
    ------
    NotebookError
        If it is not there, larger than ``MAX_BYTES``, or not a notebook.
    """
    shown = os.fspath(path)
    try:
        with Path(path).open("rb") as stream:
            status = os.fstat(stream.fileno())
            if status.st_size > MAX_BYTES:
                raise NotebookError(
                    _("{shown} is larger than {max_bytes} MiB.").format(
                        shown=shown, max_bytes=MAX_BYTES >> 20
                    ),
                    _("Clear its outputs and save it."),
                )
            data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise NotebookError(
            _("{shown} cannot be read: {error}.").format(
                shown=shown, error=error.strerror or error
            ),
            _("Save the notebook first."),
        ) from None
    return parse_notebook(data, shown, status.st_mtime)


def parse_notebook(data: bytes, path: str = "notebook", modified: float = 0.0) -> NotebookDocument:
    """Read a document from its bytes; raises as ``read_notebook`` does."""
    try:
        raw = json.loads(data)
    except (ValueError, RecursionError):
        raise NotebookError(
            _("{path} is not a notebook: it is not valid JSON.").format(path=path),
            _("Save it from Jupyter again."),
        ) from None
    raised = iter(_raised(raw))
    document = _to_version_4(raw, path)
    cells: list[DocumentCell] = []
    for number, cell in enumerate(document["cells"], start=1):
        if cell.get("cell_type") != "code":
            continue
        count = cell.get("execution_count")
        count = count if isinstance(count, int) else None
        cells.append(
            DocumentCell(
                cell_id=cell.get("id"),
                source=_text(cell.get("source")),
                label=f"[{count}]" if count is not None else f"#{number}",
                execution_count=count,
                tags=tags_of_metadata(cell.get("metadata")),
                raised=next(raised, ""),
            )
        )
    return NotebookDocument(
        path, tuple(cells), _snapshot(document), modified, _language(document["metadata"])
    )


def _to_version_4(raw: Any, path: str) -> dict[str, Any]:
    """Return the document in nbformat 4 without outputs; ids only if the file has them."""
    # cost: nbformat with jsonschema (0.1 s), which a program without a notebook does not need.
    import nbformat

    problem = NotebookError(
        _("{path} is not a notebook that nbformat can read.").format(path=path),
        _("Save it from Jupyter again."),
    )
    if not isinstance(raw, dict) or not isinstance(raw.get("nbformat"), int):
        raise problem
    had_ids = (raw["nbformat"], raw.get("nbformat_minor", 0)) >= (4, 5)
    _strip_outputs(raw)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            node = nbformat.from_dict(raw)
            document = nbformat.convert(node, to_version=4)
    except Exception:  # nbformat raises many types for an invalid document
        raise problem from None
    cells, metadata = document.get("cells"), document.get("metadata", {})
    if not isinstance(cells, list) or not isinstance(metadata, dict):
        raise problem
    if not all(isinstance(cell, dict) for cell in cells):
        raise problem
    for cell in cells:
        if not had_ids or not isinstance(cell.get("id"), str):
            cell.pop("id", None)
    if not had_ids:
        document["nbformat_minor"] = min(4, document.get("nbformat_minor", 4))
    document["metadata"] = metadata
    return dict(document)


def _raw_cells(raw: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the cells of a document of any version."""
    lists = [raw.get("cells")]
    sheets = raw.get("worksheets")
    if isinstance(sheets, list):
        lists += [sheet.get("cells") for sheet in sheets if isinstance(sheet, dict)]
    return [
        cell
        for cells in lists
        for cell in (cells if isinstance(cells, list) else [])
        if isinstance(cell, dict)
    ]


def _raised(raw: Any) -> list[str]:
    """Return for each code cell the type of the exception in its outputs, or an empty text."""
    found = []
    for cell in _raw_cells(raw) if isinstance(raw, dict) else []:
        if cell.get("cell_type") == "code":
            outputs = cell.get("outputs")
            errors = [
                str(output.get("ename") or _("an exception"))[:200]
                for output in (outputs if isinstance(outputs, list) else [])
                if isinstance(output, dict) and output.get("output_type") in ("error", "pyerr")
            ]
            expected = "raises-exception" in tags_of_metadata(cell.get("metadata"))
            found.append(errors[0] if errors and not expected else "")
    return found


def _strip_outputs(raw: dict[str, Any]) -> None:
    """Remove outputs and attachments, which may be most of the file."""
    for cell in _raw_cells(raw):
        if cell.get("cell_type") == "code":
            cell["outputs"] = []
        cell.pop("attachments", None)
    if isinstance(raw.get("metadata"), dict):
        raw["metadata"].pop("widgets", None)


def _snapshot(document: dict[str, Any]) -> bytes:
    """Return the document as bytes without execution counts, which change with each run."""
    cells = []
    for cell in document["cells"]:
        if cell.get("cell_type") == "code":
            cell = {**cell, "execution_count": None}
        cells.append(cell)
    text = json.dumps({**document, "cells": cells}, sort_keys=True, indent=1, ensure_ascii=False)
    return (text + "\n").encode("utf-8", "replace")


def _language(metadata: dict[str, Any]) -> str:
    for section, key in (("language_info", "name"), ("kernelspec", "language")):
        value = metadata.get(section)
        if isinstance(value, dict) and isinstance(value.get(key), str):
            return str(value[key]).lower()
    return "python"


def _text(source: Any) -> str:
    """Return a cell's text, which is a string or a list of lines."""
    if isinstance(source, list):
        source = "".join(part for part in source if isinstance(part, str))
    return source.replace("\r\n", "\n").replace("\r", "\n") if isinstance(source, str) else ""
