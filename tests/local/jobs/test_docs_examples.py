"""The examples of docs/python.md, run in order in one fresh Python, on the local backend."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).resolve().parents[3] / "docs" / "python.md"
_BLOCK = re.compile(r"^```python(?: title=\"([\w.]+)\")?\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_the_examples_run(tmp_path: Path) -> None:
    blocks = _BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    for name, source in blocks:
        if name:
            (tmp_path / name).write_text(source, encoding="utf-8")
    program = "\n".join(source for name, source in blocks if not name)
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("SUBMARINE_", "HADOOP_"))
    }
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={
            **kept,
            "SUBMARINE_STATE_DIR": str(tmp_path / "state"),
            "SUBMARINE_CONFIG": "",
            "PYTHONPATH": os.pathsep.join(sys.path),
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "gpus_please" in done.stdout, "the last example shows the sentence of a wrong option"
    assert (tmp_path / "fetched" / "model.json").is_file()
