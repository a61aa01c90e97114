"""Print which share of each package's lines the quick unit tests execute.

On Python 3.11 the traced tests of `make check` take more than ten minutes of CPU time, so they are
part of `make test-full`. Python 3.12 and newer trace by `sys.monitoring`, at a small part of that
cost. `.venv/bin/coverage html` shows the lines afterwards.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import coverage
from plans import QUICK

ROOT = Path(__file__).resolve().parent.parent
TESTS = ("tests/unit", "-q", "-p", "no:playwright", "--timeout", "300", *QUICK)


def main() -> int:
    """Run the tests and print the table; return pytest's exit code."""
    code = subprocess.run(
        [sys.executable, "-m", "coverage", "run", "-m", "pytest", *TESTS], cwd=ROOT, check=False
    ).returncode
    data = coverage.Coverage(config_file=str(ROOT / "pyproject.toml"))
    data.load()
    for line in table(lines_of(data)):
        print(line)
    return code


def lines_of(data: coverage.Coverage) -> dict[str, tuple[int, int]]:
    """Return the number of statements and of executed ones by package."""
    found: dict[str, tuple[int, int]] = {}
    for folder in data.config.source or ():
        for file in sorted((ROOT / folder).rglob("*.py")):
            _, statements, _, missing, _ = data.analysis2(str(file))
            package = file.relative_to(ROOT).parts[1]
            before, covered = found.get(package, (0, 0))
            executed = len(statements) - len(missing)
            found[package] = before + len(statements), covered + executed
    return found


def table(lines: dict[str, tuple[int, int]]) -> list[str]:
    """Return the rows of the table, with the total as the last one."""
    total = tuple(map(sum, zip(*lines.values(), strict=True)))
    rows = {**lines, "total": total}
    return [
        f"{'coverage of':<24}{'lines':>8}{'executed':>10}{'share':>8}",
        *(
            f"{name:<24}{count:>8}{executed:>10}{executed / max(count, 1):>8.1%}"
            for name, (count, executed) in rows.items()
        ),
    ]


if __name__ == "__main__":
    sys.exit(main())
