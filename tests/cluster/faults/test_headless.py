"""HDFS, where the output is to lie, is away in the middle of a headless run and at its end."""

from __future__ import annotations

import contextlib
import subprocess
import time
from pathlib import Path

import nbformat
import pytest

from submarine_jobs.client import Session
from submarine_jobs.errors import StorageError
from submarine_jobs.storage import Storage
from submarine_minicluster import Minicluster
from tests.headless.notebook_runs import NotebookRuns, cell
from tests.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.full]
AWAY = 60.0
OUTPUT = "/tmp/submarine-headless-away/out.ipynb"
CELL = """
import os, time
print("it began", flush=True)
while not os.path.exists("go"): time.sleep(0.1)
print("it was over", flush=True)
"""


def holds(storage: Storage, text: bytes) -> bool:
    """Whether the output is there and holds ``text``."""
    with contextlib.suppress(FileNotFoundError, StorageError):
        return text in storage.read(OUTPUT)
    return False


def test_the_output_is_saved_when_hdfs_is_back(
    three: Minicluster, own: Session, tmp_path: Path
) -> None:
    runs = NotebookRuns(tmp_path, **three.environ(), SUBMARINE_BACKEND="yarn")
    unsaved = Path(runs.environment["XDG_STATE_HOME"])
    source = runs.notebook("in", CELL)
    storage = own.backend().job_root()[0]
    process = runs.start("submarine", "run", source, "-o", f"hdfs://{OUTPUT}")
    try:
        until(lambda: holds(storage, b"it began"), "the run is in its middle")
        three.kill("namenode")
        time.sleep(AWAY / 4)
        (tmp_path / "go").touch()
        until(lambda: list(unsaved.rglob("unsaved/*-out.ipynb")), "it is kept on this machine")
        time.sleep(AWAY)
        assert process.poll() is None, "it waits for HDFS"
        three.start()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(240)
        assert process.poll() == 0
        document = nbformat.reads(storage.read(OUTPUT).decode(), 4)
        assert cell(document, "cell-0").outputs[0].text == "it began\nit was over\n"
        assert not list(unsaved.rglob("unsaved/*"))
    finally:
        process.kill()
        process.communicate()
        three.start()
        storage.delete("/tmp/submarine-headless-away", recursive=True)
