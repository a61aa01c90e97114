"""A YARN of this machine whose node offers as many GPUs as there are."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from submarine_minicluster.cluster import Minicluster
from submarine_minicluster.settings import Settings
from tests.cluster.conftest import session, submit, yarn_profile, yarn_state
from tests.cluster.notebook.test_remote_kernel_yarn import remote
from tests.gpu.machine import HOST_MEMORY, smi

__all__ = ["remote", "session", "submit", "yarn_profile", "yarn_state"]


@pytest.fixture(scope="session")
def minicluster() -> Iterator[Minicluster]:
    """In place of the shared one, whose GPUs do not exist."""
    parent = Path(tempfile.mkdtemp(prefix="submarine-gpu-"))
    cluster = Minicluster("gpu", parent=parent)
    try:
        cluster.start(Settings(memory_mb=4 * HOST_MEMORY, gpus=len(smi())))
        yield cluster
    finally:
        cluster.stop()
        shutil.rmtree(parent, ignore_errors=True)
