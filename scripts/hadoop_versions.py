"""Write the results of the tests on several releases of Hadoop into the documentation.

Usage: python scripts/hadoop_versions.py RESULTS.xml..., with the JUnit files of
`pytest tests/cluster/versions --junitxml FILE`, as `make test-full` runs it. Pairs of releases that
are not in the files keep their cell. `tests/unit/project/test_hadoop_versions.py` checks the page.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from xml.etree import ElementTree

from submarine_minicluster.settings import HADOOP_VERSIONS

PAGE = Path(__file__).resolve().parents[1] / "docs" / "yarn.md"
BEGIN, END = "<!-- hadoop versions -->\n", "<!-- end of hadoop versions -->"
HEADER = ("cluster", "client of the same release", f"client {HADOOP_VERSIONS[-1]}")
NOT_RUN = "not run"
_MODULE = "tests.cluster.versions."
_PAIR = re.compile(r"\[(\d+\.\d+\.\d+[^-\]]*)-(\d+\.\d+\.\d+)[-\]]")
_PART = re.compile(r"\+([A-Za-z]+)")
#: Name of the cluster, such as ``3.1.4, HDFS 2.10.2, Java 8``, and release of the client.
Pair = tuple[str, str]


def results(files: Iterable[Path]) -> dict[Pair, str]:
    """Return the cell of each pair of releases in the files."""
    passed: dict[Pair, int] = defaultdict(int)
    failed: dict[Pair, list[str]] = defaultdict(list)
    for pair, name, result in _tests(files):
        if result == "passed":
            passed[pair] += 1
        elif result == "failed":
            failed[pair].append(name)
    return {pair: _cell(passed[pair], failed.get(pair, [])) for pair in sorted({*passed, *failed})}


def _tests(files: Iterable[Path]) -> Iterator[tuple[Pair, str, str]]:
    for file in files:
        root = ElementTree.parse(file).getroot()  # noqa: S314 - a file of this project's tests
        for test in root.iter("testcase"):
            found = _PAIR.search(test.get("name") or "")
            if found is None or not (test.get("classname") or "").startswith(_MODULE):
                continue
            kinds = {child.tag for child in test}
            result = "failed" if kinds & {"failure", "error"} else "passed"
            name = (test.get("name") or "").partition("[")[0]
            cluster = _PART.sub(r", \1 ", found[1])
            yield (cluster, found[2]), name, "skipped" if "skipped" in kinds else result


def _cell(passed: int, failed: list[str]) -> str:
    if not failed:
        return f"{passed} tests passed"
    names = ", ".join(f"`{name}`" for name in dict.fromkeys(failed))
    return f"{len(failed)} of {passed + len(failed)} tests failed: {names}"


def cells_of(text: str) -> dict[Pair, str]:
    """Return the cells of the table of a page."""
    found = {}
    rows = [line for line in _table_of(text).splitlines() if line.startswith("|")]
    for line in rows[2:]:
        cluster, same, newest = (cell.strip() for cell in line.strip("| ").split("|"))
        found[cluster, HADOOP_VERSIONS[-1]] = newest
        found[cluster, _release(cluster)] = same
    return found


def _release(cluster: str) -> str:
    return cluster.partition(",")[0]


def _table_of(text: str) -> str:
    return text.partition(BEGIN)[2].partition(END)[0]


def with_cells(text: str, cells: Mapping[Pair, str]) -> str:
    """Return a page whose table has these cells."""
    known = {**cells_of(text), **cells}
    lines = [f"| {' | '.join(HEADER)} |", f"|{'---|' * len(HEADER)}"]
    others = sorted({cluster for cluster, _client in known} - set(HADOOP_VERSIONS))
    for cluster in (*HADOOP_VERSIONS, *others):
        pairs = ((cluster, _release(cluster)), (cluster, HADOOP_VERSIONS[-1]))
        row = [cluster, *(known.get(pair, NOT_RUN) for pair in pairs)]
        lines.append(f"| {' | '.join(row)} |")
    before, begin, rest = text.partition(BEGIN)
    return before + begin + "\n".join(["", *lines, "", END]) + rest.partition(END)[2]


def main(arguments: list[str]) -> int:
    """Update the page from the files."""
    if not arguments:
        print(__doc__, file=sys.stderr)
        return 2
    cells = results(map(Path, arguments))
    PAGE.write_text(with_cells(PAGE.read_text(encoding="utf-8"), cells), encoding="utf-8")
    for (cluster, client), cell in cells.items():
        print(f"Hadoop {cluster}, client {client}: {cell}")
    return 0 if cells else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
