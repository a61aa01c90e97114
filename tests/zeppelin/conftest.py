"""One real Zeppelin server for all tests of a run, on the run's minicluster."""

from __future__ import annotations

import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from submarine_jobs.backends.yarn.driver import stop_driver
from submarine_jobs.client import Session
from submarine_jobs.model import Profile
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


@pytest.fixture
def users(minicluster: Minicluster, tmp_path: Path) -> Iterator[tuple[str, str]]:
    """Two users of the cluster, with homes; their drivers are stopped."""
    names = f"ada-{secrets.token_hex(3)}", f"bob-{secrets.token_hex(3)}"
    for name in names:
        minicluster.add_user(name)
    yield names
    for name in names:
        # Also after a failure: a running job takes resources of other tests.
        mine = session_as(minicluster, name, tmp_path / f"end-{name}")
        for record in mine.jobs():
            if not record.state.ended:
                mine.job(record.job_id).cancel("the test is over")
    for folder in (*tmp_path.glob("**/users/*"), *tmp_path.glob("end-*")):
        stop_driver(Profile(state_dir=folder))


def session_as(cluster: Minicluster, user: str, state: Path) -> Session:
    """The cluster as that user sees it from another machine."""
    conf = Path(cluster.environ()["HADOOP_CONF_DIR"])
    return Session(Profile(backend="yarn", hadoop_conf_dir=conf, state_dir=state, user=user))
