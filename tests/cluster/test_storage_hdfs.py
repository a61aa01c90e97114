"""The storage of job directories on a real HDFS."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from submarine_jobs.backends.yarn.backend import YarnBackend
from submarine_jobs.errors import StorageError
from submarine_jobs.profile import Profile
from submarine_jobs.storage.base import Storage
from submarine_jobs.storage.hdfs import HdfsStorage
from submarine_minicluster.cluster import Minicluster

pytestmark = pytest.mark.cluster


def storage_of(cluster: Minicluster, tmp_path: Path) -> HdfsStorage:
    conf = Path(cluster.environ()["HADOOP_CONF_DIR"])
    backend = YarnBackend(Profile(backend="yarn", hadoop_conf_dir=conf, state_dir=tmp_path))
    return HdfsStorage(
        backend.conf.default_fs,
        conf_dir=conf,
        webhdfs=backend.conf.webhdfs,
        user=backend.user,
        timeout=5,
    )


@pytest.fixture
def storage(minicluster: Minicluster, tmp_path: Path) -> HdfsStorage:
    return storage_of(minicluster, tmp_path)


@pytest.fixture
def place(storage: Storage) -> Iterator[str]:
    path = f"/user/{os.environ.get('USER') or 'root'}/storage-test-{secrets.token_hex(4)}"
    storage.make_directory(path)
    yield path
    storage.delete(path, recursive=True)


def test_publish_replaces_and_reads_by_offset(storage: Storage, place: str) -> None:
    storage.publish(f"{place}/a/file", b"first")
    storage.publish(f"{place}/a/file", b"0123456789")
    assert storage.read(f"{place}/a/file", 3, 4) == b"3456"
    assert storage.read(f"{place}/a/file", 8, 40) == b"89"
    assert storage.read(f"{place}/a/file", 80, 4) == b""
    assert [(e.name, e.size) for e in storage.list_directory(f"{place}/a")] == [("file", 10)]
    assert storage.stat(f"{place}/none") is None
    with pytest.raises(FileNotFoundError):
        storage.read(f"{place}/none")


def test_one_winner_among_many(storage: Storage, place: str) -> None:
    path = f"{place}/claim"
    with ThreadPoolExecutor(4) as pool:
        won = list(pool.map(lambda n: storage.publish_exclusive(path, b"%d" % n), range(12)))
    assert sum(won) == 1
    assert storage.publish_exclusive(path, storage.read(path)), "a repeat is recognised"
    assert [entry.name for entry in storage.list_directory(place)] == ["claim"]


def test_large_files_go_through_without_being_held(
    storage: Storage, place: str, tmp_path: Path
) -> None:
    source, back = tmp_path / "source", tmp_path / "back"
    source.write_bytes(os.urandom(1 << 20) * 9)
    storage.upload(source, f"{place}/big")
    storage.download(f"{place}/big", back)
    assert back.read_bytes() == source.read_bytes()
    assert storage.walk(place) == [("big", 9 << 20)]


STRANGER = """
import sys
from pathlib import Path
from submarine_jobs.errors import StorageError
from submarine_jobs.storage.hdfs import HdfsStorage

storage = HdfsStorage(sys.argv[1], conf_dir=Path(sys.argv[2]), user="mallory", timeout=5)
for work in (
    lambda: storage.read(sys.argv[3] + "/secret.json"),
    lambda: storage.publish(sys.argv[3] + "/planted", b"x"),
    lambda: storage.list_directory(sys.argv[3]),
):
    try:
        work()
        print("allowed")
    except StorageError as error:
        print(error)
"""


def test_another_users_directory_is_closed(
    minicluster: Minicluster, storage: Storage, place: str
) -> None:
    storage.publish(f"{place}/secret.json", b"{}")
    conf = minicluster.environ()["HADOOP_CONF_DIR"]
    answer = subprocess.run(
        [sys.executable, "-c", STRANGER, storage.prefix, conf, place],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    lines = answer.stdout.splitlines()
    assert len(lines) == 3
    assert all("permission denied" in line for line in lines), answer.stdout


def test_a_namenode_that_is_away_costs_the_timeout_and_no_more(tmp_path: Path) -> None:
    storage = HdfsStorage("hdfs://127.0.0.1:1", timeout=1)
    began = time.monotonic()
    with pytest.raises(StorageError, match="did not answer in time"):
        storage.stat("/")
    # Left alone, the client tries for three minutes.
    assert time.monotonic() - began < 60
