"""A cluster of each release, with the client of the same release and with the newest client.

The fixtures of ``tests.cluster`` that depend on ``minicluster`` use these clusters.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from submarine_jobs.backends.yarn.driver import stop_driver
from submarine_jobs.model import Profile
from submarine_minicluster import Minicluster, Settings
from submarine_minicluster.hadoop import ensure_jars, write_client_commands
from submarine_minicluster.layout import Layout
from submarine_minicluster.machine import find_java
from submarine_minicluster.settings import HADOOP_VERSIONS

#: Only these pairs, such as ``3.1.4-3.5.0``; empty: all. A pair takes several minutes.
CHOSEN = os.environ.get("SUBMARINE_TEST_HADOOP_VERSIONS", "").split()


@dataclass(frozen=True)
class Pair:
    """Releases of the cluster and of the client's jars."""

    cluster: str
    client: str

    @property
    def name(self) -> str:
        return f"{self.cluster}-{self.client}"


PAIRS = [
    pair
    for version in HADOOP_VERSIONS
    for pair in dict.fromkeys((Pair(version, version), Pair(version, HADOOP_VERSIONS[-1])))
    if not CHOSEN or pair.name in CHOSEN
]


@pytest.fixture(scope="session", params=PAIRS, ids=lambda pair: pair.name)
def pair(request: pytest.FixtureRequest) -> Pair:
    found: Pair = request.param
    return found


@pytest.fixture(scope="session")
def minicluster(pair: Pair) -> Iterator[Minicluster]:
    """A cluster of the release."""
    parent = Path(tempfile.mkdtemp(prefix="submarine-test-"))
    cluster = Minicluster("versions", parent=parent)
    try:
        cluster.start(Settings(hadoop=pair.cluster), print)
        yield cluster
    finally:
        cluster.stop()
        shutil.rmtree(parent, ignore_errors=True)


@pytest.fixture(scope="session")
def yarn_profile(
    pair: Pair, minicluster: Minicluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Profile]:
    """A profile of the cluster whose ``yarn`` command is that of the client's release."""
    own = tmp_path_factory.mktemp("client")
    java = find_java()
    layout = Layout(own)
    layout.make()
    write_client_commands(layout, java, ensure_jars(pair.client, java, print), kerberos=False)
    profile = Profile(
        backend="yarn",
        hadoop_conf_dir=Path(minicluster.environ()["HADOOP_CONF_DIR"]),
        java_home=java.home,
        state_dir=own / "state",
        settings={"yarn_command": str(layout.bin / "yarn")},
    )
    yield profile
    stop_driver(profile)
