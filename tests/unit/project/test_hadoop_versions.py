"""The table of Hadoop's releases on the page about YARN is written from results of tests."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from submarine_minicluster.settings import HADOOP_VERSIONS

ROOT = Path(__file__).parents[3]
RESULTS = """<testsuites><testsuite>
<testcase classname="tests.cluster.versions.test_versions" name="test_a[3.1.4-3.1.4-native]"/>
<testcase classname="tests.cluster.versions.test_versions" name="test_b[3.1.4-3.1.4]"/>
<testcase classname="tests.cluster.versions.test_versions" name="test_c[3.1.4-3.1.4]">
  <skipped message="no"/></testcase>
<testcase classname="tests.cluster.versions.test_versions" name="test_a[3.1.4-3.5.0]"/>
<testcase classname="tests.cluster.versions.test_versions" name="test_b[3.1.4-3.5.0]">
  <failure message="no">x</failure></testcase>
<testcase classname="tests.cluster.versions.test_versions" name="test_c[3.1.4-3.5.0]">
  <error message="no">x</error></testcase>
<testcase classname="tests.cluster.versions.test_versions"
  name="test_a[3.1.4+HDFS2.10.2+Java8-3.5.0-native]"/>
<testcase classname="tests.cluster.other" name="test_a[3.2.4-3.2.4]"/>
</testsuite></testsuites>
"""


@pytest.fixture(scope="module")
def script() -> ModuleType:
    place = ROOT / "scripts" / "hadoop_versions.py"
    spec = importlib.util.spec_from_file_location("hadoop_versions", place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_results_become_cells_and_others_are_kept(script: ModuleType, tmp_path: Path) -> None:
    file = tmp_path / "results.xml"
    file.write_text(RESULTS, encoding="utf-8")
    cells = script.results([file])
    assert cells == {
        ("3.1.4", "3.1.4"): "2 tests passed",
        ("3.1.4", "3.5.0"): "2 of 3 tests failed: `test_b`, `test_c`",
        ("3.1.4, HDFS 2.10.2, Java 8", "3.5.0"): "1 tests passed",
    }
    page = f"before\n{script.BEGIN}{script.END}\nafter\n"
    first = script.with_cells(page, {("3.2.4", "3.2.4"): "9 tests passed"})
    second = script.with_cells(first, cells)
    assert "| 3.1.4 | 2 tests passed | 2 of 3 tests failed: `test_b`, `test_c` |\n" in second
    assert "| 3.2.4 | 9 tests passed | not run |\n" in second
    assert "| 3.1.4, HDFS 2.10.2, Java 8 | not run | 1 tests passed |\n" in second
    assert second.startswith("before\n")
    assert second.endswith("\nafter\n")
    assert script.with_cells(second, {}) == second


def test_the_page_has_the_table_of_all_releases(script: ModuleType) -> None:
    text = script.PAGE.read_text(encoding="utf-8")
    assert script.with_cells(text, {}) == text
    assert {cluster for cluster, _client in script.cells_of(text)} == {
        *HADOOP_VERSIONS,
        "3.1.4, HDFS 2.10.2, Java 8",
        "3.3.6, Java 11",
    }
