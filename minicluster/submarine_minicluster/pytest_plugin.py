"""Pytest fixtures that provide one real cluster for a test run, and one with Kerberos.

Load them with ``pytest_plugins = ["submarine_minicluster.pytest_plugin"]``. The first test that
uses the fixture starts the cluster in a temporary directory, and the end of the run stops it. With
``SUBMARINE_TEST_MINICLUSTER=NAME`` the tests use the minicluster of that name instead, start it if
necessary and leave it running; ``SUBMARINE_TEST_KERBEROS_MINICLUSTER`` names that with Kerberos.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from submarine_minicluster.cluster import Minicluster
from submarine_minicluster.settings import Settings

REUSE = "SUBMARINE_TEST_MINICLUSTER"
REUSE_KERBEROS = "SUBMARINE_TEST_KERBEROS_MINICLUSTER"


@contextmanager
def running(reuse: str, settings: Settings) -> Iterator[Minicluster]:
    """Start a cluster for tests: that which the environment names, or a temporary one.

    Parameters
    ----------
    reuse
        Environment variable with the name of an existing cluster, which continues to run.
    settings
        Those of the temporary cluster, which is stopped.
    """
    if name := os.environ.get(reuse):
        cluster = Minicluster(name)
        cluster.start()
        yield cluster
        return
    # Not in pytest's temporary directory: pytest removes old runs, and daemons keep files open.
    parent = Path(tempfile.mkdtemp(prefix="submarine-test-"))
    cluster = Minicluster("test", parent=parent)
    try:
        cluster.start(settings)
        yield cluster
    finally:
        cluster.stop()
        shutil.rmtree(parent, ignore_errors=True)


@pytest.fixture(scope="session")
def minicluster() -> Iterator[Minicluster]:
    """A running cluster with one node of 8 GB, 8 vcores and 4 GPUs, shared by all tests.

    A test that damages the cluster repairs it with `Minicluster.start`.
    """
    with running(REUSE, Settings()) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def kerberos_settings() -> Settings:
    """Settings of `kerberos_minicluster`; a `conftest.py` may replace this fixture."""
    return Settings(kerberos=True, https=True)


@pytest.fixture(scope="session")
def kerberos_minicluster(kerberos_settings: Settings) -> Iterator[Minicluster]:
    """A running cluster with Kerberos, shared by all tests.

    `Minicluster.env` gives a user's ticket, `Minicluster.access` the user's access to REST.
    """
    with running(REUSE_KERBEROS, kerberos_settings) as cluster:
        yield cluster


@pytest.fixture
def minicluster_env(minicluster: Minicluster, monkeypatch: pytest.MonkeyPatch) -> Minicluster:
    """The shared cluster, with the environment of this process set to it for one test."""
    for key, value in minicluster.environ().items():
        monkeypatch.setenv(key, value)
    return minicluster
