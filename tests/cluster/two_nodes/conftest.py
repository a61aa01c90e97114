"""A cluster of two nodes beside the other tests' one, started from the command line."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from submarine_minicluster import Minicluster
from submarine_minicluster.hadoop import cache_dir

Command = Callable[..., str]


@pytest.fixture(scope="package")
def data_home() -> Iterator[Path]:
    """A data directory of these tests' own; not pytest's: daemons keep files open here."""
    parent = Path(tempfile.mkdtemp(prefix="submarine-test-"))
    yield parent
    shutil.rmtree(parent, ignore_errors=True)


@pytest.fixture(scope="package")
def command(data_home: Path) -> Command:
    """`python -m submarine_minicluster ...` as its own process; gives its standard output."""
    directories = {"XDG_DATA_HOME": str(data_home), "XDG_CACHE_HOME": str(cache_dir().parent)}

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "submarine_minicluster", *arguments],
            capture_output=True,
            text=True,
            timeout=300,
            env={**os.environ, **directories},
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.fixture(scope="package")
def two(data_home: Path, command: Command) -> Iterator[Minicluster]:
    """A cluster of two nodes, so that a job on one node does not use it all."""
    cluster = Minicluster("two", parent=data_home / "jupyter-submarine" / "minicluster")
    try:
        out = command("start", "--name", "two", "--nodes", "2", "--memory", "6G", "--gpus", "4")
        assert "YARN has 2 nodes" in out
        yield cluster
    finally:
        cluster.stop()
