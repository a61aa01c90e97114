"""Walks the table of refusals in docs/collecting.md: every row is provoked as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from submarine_jobs.errors import UsageError
from submarine_jobs.program import Cell, CellCollection, build_bundle, parse_cell, parse_options

PAGE = Path(__file__).parents[4] / "docs" / "collecting.md"
ROW = re.compile(r"^\| `(%%submarine.*?)` \| (.*) \|$", re.MULTILINE)
ROWS = ROW.findall(PAGE.read_text(encoding="utf-8"))


def test_the_table_is_there() -> None:
    assert len(ROWS) >= 18


@pytest.mark.parametrize(("typed", "sentence"), ROWS)
def test_each_row_of_the_table(typed: str, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        collect_and_bundle(typed.replace("⏎", "\n"))
    # On a page `[a] [b]` would be a link.
    assert str(caught.value) == sentence.replace("\\[", "[")


def collect_and_bundle(source: str) -> None:
    marked = parse_cell(source)
    assert marked is not None
    options = parse_options(marked.line)
    collection = CellCollection()
    collection.add(Cell("id", marked.body, options.filename, "[3]", 3, marked.first_line))
    build_bundle(collection.cells())
