"""A job directory and an agent for real: the local backend's parts without any Java."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from submarine_jobs.client import Session
from submarine_jobs.model import Profile
from tests.local.agent.agent_processes import AgentProcesses
from tests.local.coordinator.gang_processes import GangProcesses
from tests.local.server.jupyter_server import Server, running
from tests.submission import Submit, submitting


@pytest.fixture
def agents(tmp_path: Path) -> Iterator[AgentProcesses]:
    made = AgentProcesses(tmp_path)
    yield made
    made.stop_all()


@pytest.fixture
def gang(tmp_path: Path) -> Iterator[GangProcesses]:
    made = GangProcesses(tmp_path)
    yield made
    made.stop_all()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 4 MiB."""
    point = tmp_path / "small"
    point.mkdir()
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m,mode=700", "tmpfs", str(point)], check=True
    )
    yield point
    # Processes of a test that failed may have files open.
    subprocess.run(["umount", "--lazy", str(point)], check=True)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A Jupyter server with the extension, one a module."""
    with running(tmp_path_factory.mktemp("server")) as made:
        yield made


@pytest.fixture(scope="module")
def session(server: Server) -> Session:
    """What a kernel of that server has."""
    return Session(Profile(backend="local", state_dir=server.scratch / "state"))


@pytest.fixture(scope="module")
def submit(session: Session) -> Iterator[Submit]:
    """Submits programs as that kernel does."""
    with submitting(session) as made:
        yield made


@pytest.fixture(autouse=True, scope="session")
def nothing_is_left(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Wait until the processes of ended jobs have disconnected their clients and exited."""
    yield
    top = str(tmp_path_factory.getbasetemp())
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        lines = [process.info["cmdline"] or [] for process in psutil.process_iter(["cmdline"])]
        if not any(word.startswith(top) for line in lines for word in line):
            return
        time.sleep(0.2)
