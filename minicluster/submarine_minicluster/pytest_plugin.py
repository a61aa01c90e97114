"""Pytest fixtures that provide one real cluster for a test run.

Load them with ``pytest_plugins = ["submarine_minicluster.pytest_plugin"]``. The first test that
uses the fixture starts the cluster in a temporary directory, and the end of the run stops it. With
``SUBMARINE_TEST_MINICLUSTER=NAME`` the tests use the minicluster of that name instead, start it if
necessary and leave it running.
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

    A test that damages the cluster repairs it with `Minicluster.start`.
    """
    if name := os.environ.get(REUSE):
        cluster = Minicluster(name)
        cluster.start()
        yield cluster
        return
    # Not in pytest's temporary directory: pytest removes old runs, and daemons keep files open.
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
    """The shared cluster, with the environment of this process set to it for one test."""
    for key, value in minicluster.environ().items():
        monkeypatch.setenv(key, value)
    return minicluster
