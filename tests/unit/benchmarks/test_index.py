"""The list of benchmarks in the documentation, and the table of `compare.py`."""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "benchmarks"))

import compare  # noqa: E402

#: A program that benchmarks start, and the tool that compares checkouts.
NO_BENCHMARKS = {"training_steps.py", "compare.py"}


def scripts() -> set[str]:
    paths = (ROOT / "benchmarks").glob("*.py")
    return {path.name for path in paths if "__main__" in path.read_text()} - NO_BENCHMARKS


def test_performance_page_has_one_row_for_each_benchmark() -> None:
    text = (ROOT / "docs/performance.md").read_text()
    rows = re.findall(r"^\| `(\w+\.py)`[^|]*\|[^|]+\|[^|]+\|$", text, re.MULTILINE)
    assert sorted(rows) == sorted(scripts())


def test_compared_benchmarks_exist() -> None:
    assert {f"{name}.py" for name in compare.BENCHMARKS} <= scripts()
