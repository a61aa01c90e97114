"""Environments on a shared path: who may read them, and that none is replaced."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from submarine_jobs.environments import check_env, check_target, publish_archive
from submarine_jobs.errors import UsageError
from submarine_jobs.model import PythonEnv, parse_python_env
from submarine_jobs.storage import Entry, LocalStorage


class Cluster(LocalStorage):
    """A file system whose top is a directory of this machine, searchable by all users."""

    prefix = "hdfs://nn"

    def __init__(self, root: Path) -> None:
        super().__init__()
        self.root = str(root)

    def path_of(self, uri: str) -> str | None:
        return uri.removeprefix(self.prefix) if uri.startswith(self.prefix) else None

    def stat(self, path: str) -> Entry | None:
        try:
            info = os.stat(self.root + path)
        except FileNotFoundError:
            return None
        is_directory = os.path.isdir(self.root + path)
        return Entry(path, info.st_size, is_directory, info.st_mtime, mode=info.st_mode & 0o777)

    def make_directory(self, path: str, *, mode: int = 0o700) -> None:
        os.makedirs(self.root + path, exist_ok=True)
        os.chmod(self.root + path, mode)

    def upload(
        self, source: Path, path: str, progress: object = None, *, mode: int = 0o600
    ) -> None:
        Path(self.root + path).write_bytes(source.read_bytes())
        os.chmod(self.root + path, mode)


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    root = tmp_path / "cluster"
    root.mkdir()
    root.chmod(0o755)
    return Cluster(root)


def test_all_users_may_read_what_is_published(cluster: Cluster, tmp_path: Path) -> None:
    archive = tmp_path / "e.tar.gz"
    archive.write_bytes(b"archive")
    uri = "hdfs://nn/envs/e.tar.gz"
    assert publish_archive(archive, uri, cluster) == 7
    entry = cluster.stat("/envs/e.tar.gz")
    assert entry is not None
    assert entry.mode == 0o644
    check_env(parse_python_env(f"shared:{uri}"), cluster)
    with pytest.raises(UsageError, match="exists already, and jobs may use it"):
        publish_archive(archive, uri, cluster)


@pytest.mark.parametrize(
    ("path", "mode", "sentence"),
    [
        ("envs/e.tar.gz", 0o600, "not all users may read the file. Run `hdfs dfs -chmod 644"),
        ("envs", 0o700, "not all users may search the directory /envs"),
        ("", 0o750, "not all users may search the directory /."),
    ],
)
def test_permissions_that_yarn_would_refuse_are_named(
    cluster: Cluster, tmp_path: Path, path: str, mode: int, sentence: str
) -> None:
    archive = tmp_path / "e.tar.gz"
    archive.write_bytes(b"archive")
    publish_archive(archive, "hdfs://nn/envs/e.tar.gz", cluster)
    os.chmod(f"{cluster.root}/{path}", mode)
    with pytest.raises(UsageError, match=sentence):
        check_env(PythonEnv("shared", "hdfs://nn/envs/e.tar.gz"), cluster)
    if path != "envs/e.tar.gz":
        with pytest.raises(UsageError, match=sentence):
            check_target("hdfs://nn/envs/new.tar.gz", cluster)


@pytest.mark.parametrize(
    ("uri", "sentence"),
    [
        ("hdfs://nn/none.tar.gz", "there is no such file"),
        ("hdfs://other/e.tar.gz", "is not in the file system of the job root, hdfs://nn"),
    ],
)
def test_missing_archive_is_one_sentence(cluster: Cluster, uri: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        check_env(PythonEnv("shared", uri), cluster)


@pytest.mark.parametrize("uri", ["", "/envs/e.tar.gz", "hdfs://nn/envs/e", "hdfs://nn/envs/e.zip"])
def test_an_address_that_yarn_could_not_unpack_is_refused(cluster: Cluster, uri: str) -> None:
    with pytest.raises(UsageError, match=r"cannot be published at .* ends in \.tar\.gz"):
        check_target(uri, cluster)


@pytest.mark.parametrize("text", ["shared:", "shared:/envs/e.tar.gz", "shared:hdfs://nn/e.txt"])
def test_what_is_no_shared_archive(text: str) -> None:
    with pytest.raises(UsageError, match="is not an archive on the cluster"):
        parse_python_env(text)
