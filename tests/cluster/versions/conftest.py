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

from submarine_jobs.model import Profile
from submarine_minicluster import Minicluster, Settings
from submarine_minicluster.hadoop import cache_dir, ensure_jars, write_client_commands
from submarine_minicluster.layout import Layout
from submarine_minicluster.machine import find_java
from submarine_minicluster.settings import HADOOP_VERSIONS
from tests.cluster.own_cluster import own_profile

#: Only these pairs, such as ``3.1.4-3.5.0``; empty: all. A pair takes several minutes.
CHOSEN = os.environ.get("SUBMARINE_TEST_HADOOP_VERSIONS", "").split()


@dataclass(frozen=True)
class Pair:
    """Releases of the cluster and of the client's jars.

    Attributes
    ----------
    hdfs
        Release of HDFS, if it is older.
    java
        Major version of the daemons' Java; 0 for that of the client.
    """

    cluster: str
    client: str
    hdfs: str = ""
    java: int = 0

    @property
    def name(self) -> str:
        """The name of the tests' parameter, which ``scripts/hadoop_versions.py`` reads."""
        hdfs, java = f"+HDFS{self.hdfs}" * bool(self.hdfs), f"+Java{self.java}" * bool(self.java)
        return f"{self.cluster}{hdfs}{java}-{self.client}"

    @property
    def java_home(self) -> Path | None:
        """Where ``scripts/setup.sh older-java`` unpacks the daemons' Java."""
        return cache_dir() / f"java-{self.java}" / "home" if self.java else None


#: Clusters with older releases of HDFS and Java.
OLDER = (("3.1.4", "2.10.2", 8), ("3.3.6", "", 11))
PAIRS = [
    pair
    for cluster, hdfs, java in (*((version, "", 0) for version in HADOOP_VERSIONS), *OLDER)
    for pair in dict.fromkeys(
        Pair(cluster, client, hdfs, java) for client in (cluster, HADOOP_VERSIONS[-1])
    )
    if not CHOSEN or pair.name in CHOSEN
]


@pytest.fixture(scope="session", params=PAIRS, ids=lambda pair: pair.name)
def pair(request: pytest.FixtureRequest) -> Pair:
    found: Pair = request.param
    return found


@pytest.fixture(scope="session")
def minicluster(pair: Pair) -> Iterator[Minicluster]:
    """A cluster of the release."""
    home = pair.java_home
    if home is not None and not home.exists():
        pytest.skip(f"no Java {pair.java}: run scripts/setup.sh older-java")
    settings = Settings(hadoop=pair.cluster, hdfs=pair.hdfs, java=str(home or ""))
    parent = Path(tempfile.mkdtemp(prefix="submarine-test-"))
    cluster = Minicluster("versions", parent=parent)
    try:
        cluster.start(settings, print)
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
    settings = {"yarn_command": str(layout.bin / "yarn")}
    with own_profile(minicluster.environ(), own / "state", settings=settings) as profile:
        yield profile
