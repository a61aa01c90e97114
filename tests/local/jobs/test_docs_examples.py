"""The examples of docs/python.md and the first job of docs/quickstart.md, on the local backend."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.notebooks import write_notebook
from tests.unit.pages import first_job_cells

PAGE = Path(__file__).resolve().parents[3] / "docs" / "python.md"
_BLOCK = re.compile(r"^```python(?: title=\"([\w.]+)\")?\n(.*?)^```", re.MULTILINE | re.DOTALL)


def environment(tmp_path: Path) -> dict[str, str]:
    """Return the variables of this process with a state directory, and without a cluster."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("SUBMARINE_", "HADOOP_"))
    }
    return {
        **kept,
        "SUBMARINE_STATE_DIR": str(tmp_path / "state"),
        "SUBMARINE_CONFIG": "",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }


def test_the_examples_run(tmp_path: Path) -> None:
    blocks = _BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    for name, source in blocks:
        if name:
            (tmp_path / name).write_text(source, encoding="utf-8")
    program = "\n".join(source for name, source in blocks if not name)
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "gpus_please" in done.stdout, "the last example shows the sentence of a wrong option"
    assert (tmp_path / "fetched" / "model.json").is_file()


def test_the_first_job_runs(tmp_path: Path) -> None:
    """The cells of the page, in a kernel without the magics, and what the page says of them."""
    write_notebook(tmp_path / "first.ipynb", *first_job_cells())
    words = ("run", "first.ipynb", "--execute", "--backend", "local", "-o", "done.ipynb")
    done = subprocess.run(
        [sys.executable, "-m", "submarine_jobs.cli", *words],
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    weights = json.loads((tmp_path / "trained" / "weights.json").read_text(encoding="utf-8"))
    # The circle ends where both terms are equal.
    assert -weights[0] / weights[1] == pytest.approx(0.5, abs=0.05)
    executed = (tmp_path / "done.ipynb").read_text(encoding="utf-8")
    accuracy = re.search(r'"(0\.9\d+)\\n"', executed)
    assert accuracy, "the last cell prints the returned accuracy"
    assert float(accuracy[1]) > 0.98
