"""The document of a notebook is found, also after a rename; errors keep the collected cells."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from submarine_magics.cells import NotebookCells, RenamedDocument, document_path
from submarine_magics.execution import Execution


def write_notebook(path: Path, *ids: str) -> Path:
    cells: list[dict[str, Any]] = [
        {"id": name, "cell_type": "code", "metadata": {}, "source": "", "outputs": [],
         "execution_count": None}
        for name in ids
    ]  # fmt: skip
    path.write_text(
        json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells})
    )
    return path


def test_a_renamed_notebook_is_found_by_the_ids_of_its_cells(tmp_path: Path) -> None:
    renamed, reported = RenamedDocument(), tmp_path / "Untitled.ipynb"
    write_notebook(tmp_path / "other.ipynb", "x", "y")
    (tmp_path / "broken.ipynb").write_text("{")
    assert renamed.find(reported, {"a"}) is None
    found = write_notebook(tmp_path / "digits.ipynb", "b", "a")
    assert renamed.find(reported, set()) is None
    assert renamed.find(None, {"a"}) is None
    assert renamed.find(reported, {"a"}) == found
    again = found.rename(tmp_path / "digits2.ipynb")
    assert renamed.find(reported, {"a"}) == again
    again.unlink()
    assert renamed.find(reported, {"a"}) is None


def test_document_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reported, other = tmp_path / "a.ipynb", tmp_path / "b.ipynb"
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)
    assert document_path({}) is None
    monkeypatch.setenv("JPY_SESSION_NAME", str(reported))
    assert document_path({}) is None
    reported.write_text("{}")
    other.write_text("{}")
    assert document_path({}) == reported
    assert document_path({"__vsc_ipynb_file__": str(other)}) == other
    assert document_path({"__vsc_ipynb_file__": 7}) == reported


def test_an_unreadable_document_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.ipynb"
    path.write_text("not json")
    cells = NotebookCells(lambda: path)
    cells.collect(Execution("%%submarine\nx = 1", "a", 1), None, only=False)
    assert [cell.source for cell in cells.collection.cells()] == ["x = 1"]


def test_an_error_in_the_magic_line_keeps_the_collected_cell() -> None:
    cells = NotebookCells(lambda: None)
    cells.collect(Execution("%%submarine\nx = 1", "a", 1), None, only=False)
    cells.on_execution(Execution("%%submarine --fiel m.py\nx = 2", "a", 2))
    assert len(cells.collection) == 1
    cells.on_execution(Execution("%%submarine run d\nx = 2", "a", 3))
    assert len(cells.collection) == 0
