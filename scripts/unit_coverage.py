"""Run pytest, then print which share of each package's lines its processes executed.

slipcover removes its probe of a line after the line was executed, so that it costs little; tracing
by coverage.py makes the unit tests 2.4 times as slow on Python 3.11. Programs that the tests start
are not measured.

Run: ``python scripts/unit_coverage.py [ARGUMENTS OF PYTEST]``
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
#: slipcover loads its plugin of pytest before pytest does.
LOADED = "ignore:Module already imported:pytest.PytestAssertRewriteWarning"


def main(arguments: list[str]) -> int:
    """Run the tests and print the table; return pytest's exit code."""
    with tempfile.TemporaryDirectory(prefix="coverage-") as scratch:
        report = Path(scratch) / "coverage.json"
        slipcover = [sys.executable, "-m", "slipcover", "--json", "--out", str(report)]
        code = subprocess.run(
            [*slipcover, "-m", "pytest", "-W", LOADED, *arguments], cwd=ROOT, check=False
        ).returncode
        # A repetition of failed tests executes a small part.
        if "--last-failed" not in arguments and report.is_file():
            print("\n".join(table(lines_of(json.loads(report.read_text())))), flush=True)
    return code


def lines_of(report: Mapping[str, Any]) -> dict[str, tuple[int, int]]:
    """Return the number of lines and of executed ones by package."""
    found: dict[str, tuple[int, int]] = {}
    for file, lines in sorted(report["files"].items()):
        package = Path(file).parts[1]
        before, covered = found.get(package, (0, 0))
        executed = len(lines["executed_lines"])
        found[package] = before + executed + len(lines["missing_lines"]), covered + executed
    return found


def table(lines: Mapping[str, tuple[int, int]]) -> list[str]:
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
    sys.exit(main(sys.argv[1:]))
