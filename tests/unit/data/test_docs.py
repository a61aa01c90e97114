"""The examples of docs/submarine-data.md run, and its table has all formats."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from submarine_data import open_dataset
from submarine_data.formats import format_names
from tests.unit.data.writers import package
from tests.unit.pages import ROOT, blocks

PAGE = ROOT / "docs" / "submarine-data.md"


def test_the_examples_of_the_page_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arrow, parquet = package("pyarrow"), package("pyarrow.parquet")
    (tmp_path / "digits").mkdir()
    table = {"label": [i % 10 for i in range(2000)], "pixels": [[0.0] * 8] * 2000}
    parquet.write_table(arrow.table(table), tmp_path / "digits" / "part-0.parquet")
    monkeypatch.chdir(tmp_path)
    first, second = blocks(PAGE, "python")
    values: dict[str, object] = {}
    exec(first, values)
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == 2 * 32
    assert printed[0].startswith("0 (64, 8) ")
    exec(second, values)
    state = json.loads(Path("state.json").read_text())
    exec(second, values)  # Continues from the last state.
    dataset = open_dataset("digits", batch_size=64, shuffle=1000)
    dataset.restore(state)
    assert values["number"] == len(list(dataset.epochs(3))) - 1 == 95 - 90


def test_the_table_has_all_formats() -> None:
    text = PAGE.read_text(encoding="utf-8").partition("\n## Formats\n")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `(\w+)` \| `", text, re.MULTILINE) == format_names()
