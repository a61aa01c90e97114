"""Find code that two packages have in common: eight or more equal lines in a row.

Compares the product's Python and TypeScript files line by line, without indentation, blank lines,
comments, docstrings and imports. A package is a directory. ``accepted_duplicates.toml`` lists pairs
of files that may have equal lines, with a reason; an entry without a finding is an error too.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
ACCEPTED = Path(__file__).with_name("accepted_duplicates.toml")
FOLDERS = (
    "runtime",
    "jobs",
    "data",
    "magics",
    "kernel",
    "minicluster",
    "server_ext",
    "workflows",
    "zeppelin",
    "labextension/src",
)
LEAST = 8
_COMMENT = re.compile(r"/\*.*?\*/|^\s*//.*?$", re.DOTALL | re.MULTILINE)
_IMPORT = re.compile(r"^(?:import|export \{)[^;]*;", re.MULTILINE)


class Line(NamedTuple):
    """A line that counts: its number in the file, and its text without indentation."""

    number: int
    text: str


class Finding(NamedTuple):
    """Equal lines of two files."""

    first: str
    first_line: int
    second: str
    second_line: int
    length: int


def lines_of(path: Path) -> list[Line]:
    """Return the lines of a file that are compared."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        skipped = _skipped(ast.parse(text))
    else:
        skipped = set()
        for pattern in (_COMMENT, _IMPORT):
            text = pattern.sub(lambda match: "\n" * match[0].count("\n"), text)
    return [
        Line(number, line.strip())
        for number, line in enumerate(text.splitlines(), 1)
        if line.strip() and number not in skipped and not line.lstrip().startswith("#")
    ]


def _skipped(tree: ast.Module) -> set[int]:
    """Return the numbers of the lines of docstrings and imports."""
    found: set[int] = set()
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if is_text or isinstance(node, (ast.Import, ast.ImportFrom)):
            assert isinstance(node, ast.stmt)
            found.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return found


def compare(files: dict[str, list[Line]], least: int = LEAST) -> list[Finding]:
    """Return the longest runs of at least ``least`` equal lines of files of different packages."""
    places: dict[tuple[str, ...], list[tuple[str, int]]] = defaultdict(list)
    for name, lines in files.items():
        for start in range(len(lines) - least + 1):
            places[tuple(line.text for line in lines[start : start + least])].append((name, start))
    starts = {
        pair
        for found in places.values()
        for pair in combinations(found, 2)
        if Path(pair[0][0]).parent != Path(pair[1][0]).parent
    }
    return sorted(_runs(starts, files, least))


def _runs(
    starts: set[tuple[tuple[str, int], tuple[str, int]]], files: dict[str, list[Line]], least: int
) -> Iterator[Finding]:
    """Join windows that follow each other."""
    for (first, place), (second, other) in starts:
        if ((first, place - 1), (second, other - 1)) in starts:
            continue
        length = 0
        while ((first, place + length), (second, other + length)) in starts:
            length += 1
        lines = files[first][place].number, files[second][other].number
        yield Finding(first, lines[0], second, lines[1], length + least - 1)


def product_files() -> dict[str, list[Line]]:
    """Return the compared lines of all files, by their path in the repository."""
    return {
        str(path.relative_to(ROOT)): lines_of(path)
        for folder in FOLDERS
        for path in sorted((ROOT / folder).rglob("*"))
        if path.suffix in (".py", ".ts", ".tsx")
    }


def main() -> int:
    """Print what is not accepted; return 1 if there is any."""
    accepted = {
        tuple(sorted(entry["files"]))
        for entry in tomllib.loads(ACCEPTED.read_text(encoding="utf-8"))["pair"]
        if entry["reason"]
    }
    findings = compare(product_files())
    for found in findings:
        if (found.first, found.second) not in accepted:
            print(
                f"{found.first}:{found.first_line} and {found.second}:{found.second_line} have "
                f"{found.length} equal lines in a row"
            )
    unused = accepted - {(found.first, found.second) for found in findings}
    for first, second in sorted(unused):
        print(f"{ACCEPTED.name}: {first} and {second} have no {LEAST} equal lines any more")
    return 1 if unused or any((f.first, f.second) not in accepted for f in findings) else 0


if __name__ == "__main__":
    sys.exit(main())
