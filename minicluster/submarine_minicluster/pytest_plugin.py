"""Pytest fixtures over `Minicluster`: one real cluster for a whole test run.

Load it with ``pytest_plugins = ["submarine_minicluster.pytest_plugin"]``. The cluster is started
by the first test that asks for it, in a temporary directory of its own, and is stopped at the end
of the run whatever happened. ``SUBMARINE_TEST_MINICLUSTER=NAME`` makes the tests use the
minicluster of that name instead, started if need be and left running: quicker while writing tests.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from submarine_minicluster.cluster import Minicluster
from submarine_minicluster.settings import Settings

REUSE = "SUBMARINE_TEST_MINICLUSTER"


@pytest.fixture(scope="session")
def minicluster() -> Iterator[Minicluster]:
    """A running cluster with one node of 8 GB, 8 vcores and 4 GPUs, shared by all tests.

    A test that harms it repairs it (`Minicluster.start` does).
    """
    if name := os.environ.get(REUSE):
        cluster = Minicluster(name)
        cluster.start()
        yield cluster
        return
    # Not under pytest's own directory, whose old runs it removes: daemons keep files open here.
    parent = Path(tempfile.mkdtemp(prefix="submarine-test-"))
    cluster = Minicluster("test", parent=parent)
    try:
        cluster.start(Settings())
        yield cluster
    finally:
        cluster.stop()
        shutil.rmtree(parent, ignore_errors=True)


@pytest.fixture
def minicluster_env(minicluster: Minicluster, monkeypatch: pytest.MonkeyPatch) -> Minicluster:
    """The shared cluster, with this process's environment pointing at it for one test."""
    for key, value in minicluster.environ().items():
        monkeypatch.setenv(key, value)
    return minicluster
