"""One real Zeppelin server for all tests of a run, on the run's minicluster."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from submarine_minicluster.cluster import Minicluster
from tests.zeppelin.server import Zeppelin


@pytest.fixture(scope="session")
def zeppelin_home() -> Iterator[Path]:
    """Where servers of a run lie: not below pytest's own directory, of which old runs go away."""
    home = Path(tempfile.mkdtemp(prefix="submarine-zeppelin-"))
    yield home
    shutil.rmtree(home, ignore_errors=True)


@pytest.fixture(scope="session")
def zeppelin(zeppelin_home: Path, minicluster: Minicluster) -> Iterator[Zeppelin]:
    """A server with the groups ``submarine`` and ``echo``; jobs go to the minicluster."""
    server = Zeppelin(zeppelin_home / "shared", {**minicluster.environ()})
    server.install()
    server.install_echo()
    try:
        server.start()
        yield server
    finally:
        server.close()


@pytest.fixture
def own_zeppelin(tmp_path: Path) -> Iterator[Callable[..., Zeppelin]]:
    """Makes a server with the group ``echo`` that a test may kill."""
    made: list[Zeppelin] = []

    def make(echo: dict[str, str] | None = None, **properties: Any) -> Zeppelin:
        server = Zeppelin(tmp_path / f"zeppelin-{len(made)}", **properties)
        server.install_echo(**(echo or {}))
        made.append(server)
        server.start()
        return server

    yield make
    for server in made:
        server.close()
