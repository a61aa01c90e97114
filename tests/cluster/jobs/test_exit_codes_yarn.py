"""The exit code of the client, of a hundred jobs after each other."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.cluster.conftest import Shell

pytestmark = [pytest.mark.cluster, pytest.mark.full]
JOBS, AT_ONCE = 100, 4
FINE, FAILING = "print('done')\n", "raise SystemExit(3)\n"


def client(number: int) -> tuple[int, int, str]:
    """Run one job; return the expected and the actual exit code, and the end of the output.

    Every third program fails, and every fifth job is a gang.
    """
    program, expected = ("failing.py", 1) if number % 3 == 0 else ("fine.py", 0)
    words = ["--memory", "128M", "--framework", "any", "--wait", "--name", f"job{number}"]
    done = subprocess.run(
        [sys.executable, "-m", "submarine_jobs.cli", "run", program, *words]
        + (["--worker", "2"] if number % 5 == 0 else []),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
        env={**os.environ, "PYTHONFAULTHANDLER": "1"},
    )
    return expected, done.returncode, done.stdout[-2000:]


@pytest.mark.timeout(5400)
def test_the_exit_code_is_right_in_all_of_100_jobs(shell: Shell) -> None:
    Path("fine.py").write_text(FINE, encoding="utf-8")
    Path("failing.py").write_text(FAILING, encoding="utf-8")
    with ThreadPoolExecutor(AT_ONCE) as pool:
        results = list(pool.map(client, range(JOBS)))
    wrong = [result for result in results if result[0] != result[1]]
    assert not wrong, f"{len(wrong)} of {JOBS}: {wrong[:3]}"
