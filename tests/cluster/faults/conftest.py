"""One cluster of three nodes with pre-emption, taken apart by all tests of this directory."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from submarine_jobs.client import Job, Session
from submarine_minicluster import Minicluster, Settings
from tests.cluster.jobs.training import program, until_step, workers
from tests.cluster.own_cluster import own_profile
from tests.submission import submitting


@pytest.fixture(scope="package")
def three() -> Iterator[Minicluster]:
    """The cluster; a test that breaks something of it repairs it."""
    parent = Path(tempfile.mkdtemp(prefix="submarine-test-"))
    cluster = Minicluster("three", parent=parent)
    try:
        cluster.start(
            Settings(nodes=3, memory_mb=2048, preemption=True, labels=("fast=2",), node_expiry=6)
        )
        yield cluster
    finally:
        cluster.stop()
        shutil.rmtree(parent, ignore_errors=True)


@pytest.fixture(scope="package")
def own(three: Minicluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """A session on it, with a driver of its own."""
    with own_profile(three.environ(), tmp_path_factory.mktemp("state")) as profile:
        yield Session(profile)


@pytest.fixture
def go(tmp_path: Path) -> Path:
    """The file without which no training does its last step: for when the fault is done."""
    return tmp_path / "go"


@pytest.fixture
def train(own: Session, go: Path) -> Iterator[Callable[..., Job]]:
    """Start a training that does not end before ``go`` exists."""
    training = {"roles": workers(2), "policy": "all", "framework": "any"}
    with submitting(own, backend="yarn", **training) as submit:

        def start(
            name: str, *, at: int = 12, task: str = "worker:0", source: str = "", **changes: Any
        ) -> Job:
            job = submit(source or program(hold=str(go)), name, **changes)
            if at:
                until_step(job, at, task)
            return job

        yield start
