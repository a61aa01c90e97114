"""Four workers on YARN read all records of HDFS in each epoch, also when one of them is killed."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from submarine_data import filesystem
from submarine_data.remote import WebHdfsFileSystem
from submarine_minicluster.cluster import Minicluster
from tests.local.data.counted_epochs import Size, kill_and_check, sizes, start, write_files
from tests.submission import Submit

pytestmark = pytest.mark.cluster


@pytest.fixture
def directory(minicluster: Minicluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A directory of HDFS, removed at the end."""
    monkeypatch.setenv("HADOOP_CONF_DIR", minicluster.environ()["HADOOP_CONF_DIR"])
    path = f"/tmp/counted epochs {secrets.token_hex(4)}"
    yield f"hdfs://{path}"
    _place, store = WebHdfsFileSystem().located(f"hdfs://{path}")
    store.delete(path, recursive=True)


@sizes
def test_no_record_is_lost_or_used_twice(
    submit: Submit, directory: str, tmp_path: Path, size: Size
) -> None:
    pytest.importorskip("fsspec")
    system = filesystem()
    write_files(size, lambda name: system.open(f"{directory}/{name}", "wb"))
    job = start(submit, directory, size, tmp_path / "go")
    kill_and_check(job, size, tmp_path / "go", 900)
