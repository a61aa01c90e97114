"""Clusters whose default file system is a mount table of viewfs."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from submarine_jobs.backends.yarn.cluster import read_properties, write_properties
from submarine_jobs.backends.yarn.driver import stop_driver
from submarine_jobs.commands import execute
from submarine_jobs.model import Profile, hadoop_user
from submarine_minicluster import Minicluster, Settings
from submarine_runtime.protocol import State
from tests.cluster.conftest import Shell

pytestmark = [pytest.mark.cluster, pytest.mark.full]
LIMIT = 180.0
WAREHOUSE = f"/user/{hadoop_user()}/warehouse"
TABLE = "fs.viewfs.mounttable.sub"
#: Reads the input's copy, and the same file by the program's own reader.
PROGRAM = """
import os
print(open(os.environ["SUBMARINE_INPUT_DATA"]).read(), end="")
from submarine_data import open_file
print(open_file("viewfs:///data/words.txt").read().decode(), end="")
"""


def view_of(default_fs: str) -> dict[str, str]:
    """The mount table; the data has another name than in HDFS."""
    return {
        "fs.defaultFS": "viewfs://sub/",
        f"{TABLE}.link./user": f"{default_fs}/user",
        f"{TABLE}.link./data": f"{default_fs}{WAREHOUSE}",
        f"{TABLE}.link./tmp": f"{default_fs}/tmp",
        f"{TABLE}.link./mr-history": f"{default_fs}/mr-history",
    }


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shell]:
    """A command line with an own state directory; a test sets the cluster's variables."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("SUBMARINE_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.delenv("SUBMARINE_BACKEND", raising=False)
    monkeypatch.chdir(tmp_path)
    yield Shell()
    stop_driver(Profile(state_dir=tmp_path / "state"))


def check_jobs(shell: Shell) -> None:
    """A task and a gang read data of the view."""
    storage, root = shell.session(shell.config({})).backend().job_root()
    assert storage.prefix.startswith("hdfs://")
    assert root.startswith("/user/")
    storage.make_directory(WAREHOUSE)
    storage.publish(f"{WAREHOUSE}/words.txt", b"words\n")
    Path("view.py").write_text(PROGRAM, encoding="utf-8")
    for instances, uri in ((1, "viewfs://sub/data/words.txt"), (2, "/data/words.txt")):
        words = ["--worker", str(instances), "--memory", "256M", "--framework", "any"]
        job = execute(["run", "view.py", *words, "--input", f"DATA={uri}"], shell).job
        assert job is not None
        record = job.wait(LIMIT)
        assert record.state is State.SUCCEEDED, record.detail
        for index in range(instances):
            assert job.log("stdout", task=f"worker:{index}").data == b"words\nwords\n"


def test_clients_with_a_view_run_jobs(
    minicluster_env: Minicluster, client: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the client has the mount table."""
    conf = tmp_path / "conf"
    shutil.copytree(minicluster_env.environ()["HADOOP_CONF_DIR"], conf)
    site = {**read_properties(conf / "core-site.xml"), **view_of(minicluster_env.default_fs)}
    (conf / "core-site.xml").write_bytes(write_properties(site))
    monkeypatch.setenv("HADOOP_CONF_DIR", str(conf))
    check_jobs(client)


@pytest.fixture
def viewed() -> Iterator[Minicluster]:
    """A cluster whose daemons and nodes have the mount table too."""
    parent = Path(tempfile.mkdtemp(prefix="submarine-test-"))
    cluster = Minicluster("view", parent=parent)
    try:
        cluster.start(Settings())
        cluster.stop()
        address = cluster.default_fs.removeprefix("hdfs://")
        view = {**view_of(cluster.default_fs), "dfs.namenode.rpc-address": address}
        cluster.start(Settings(properties=tuple(f"{key}={view[key]}" for key in view)))
        yield cluster
    finally:
        cluster.stop()
        shutil.rmtree(parent, ignore_errors=True)


def test_a_cluster_with_a_view_runs_jobs(
    viewed: Minicluster, client: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key, value in viewed.environ().items():
        monkeypatch.setenv(key, value)
    check_jobs(client)
