"""HDFS is not available for a minute, for another user than the process's (WebHDFS)."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from submarine_jobs.client import Session
from submarine_jobs.errors import StorageError
from submarine_jobs.model import JobView
from submarine_jobs.storage import WebHdfsStorage
from submarine_minicluster import Minicluster
from submarine_runtime.protocol import State
from tests.cluster.own_cluster import own_profile
from tests.submission import make_job
from tests.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.full]
AWAY = 60.0
PROGRAM = """
import os, time
print("it began", flush=True)
while not os.path.exists({go!r}): time.sleep(0.1)
print("it was over", flush=True)
"""


@pytest.fixture
def ada(three: Minicluster, tmp_path: Path) -> Iterator[Session]:
    """Another user's session; a call has a little longer than usual."""
    user = f"ada-{secrets.token_hex(3)}"
    three.add_user(user)
    with own_profile(three.environ(), tmp_path / "state", user=user, timeout=30.0) as profile:
        yield Session(profile)
        three.start()  # whatever the test has left


def published(storage: WebHdfsStorage, path: str) -> bool:
    """Whether one write went through: a call waits for half a minute, a restart may take more."""
    try:
        storage.publish(path, b"1")
    except StorageError:
        return False
    return True


def test_a_minute_without_hdfs(three: Minicluster, ada: Session, tmp_path: Path) -> None:
    go = tmp_path / "go"
    job = ada.submit(*make_job(PROGRAM.format(go=str(go)), "away", backend="yarn"))
    seen: list[JobView] = []
    stop = ada.watcher.subscribe(job, seen.append)
    try:
        until(lambda: any("it began" in view.tail for view in seen))
        storage = job.directory.storage
        assert isinstance(storage, WebHdfsStorage)
        path = f"{job.directory.path}/of-the-test"
        three.kill("namenode")
        began = time.monotonic()
        with pytest.raises(StorageError, match=r"WebHDFS at|did not answer in time"):
            storage.read(path)
        while time.monotonic() - began < AWAY:
            assert not seen[-1].record.state.ended
            time.sleep(0.5)
        with ThreadPoolExecutor(1) as pool:
            # Begun while it is away, it is done once it is back, as often as that takes.
            writing = pool.submit(until, lambda: published(storage, path))
            three.start()
            writing.result(180)
        assert storage.read(path) == b"1"
        go.touch()
        until(lambda: seen[-1].record.state is State.SUCCEEDED)
        assert "it was over" in seen[-1].tail
        # A submit right after it is as any other.
        again = ada.submit(*make_job("print('well')", "after", backend="yarn"))
        assert again.wait(timeout=180).state is State.SUCCEEDED
    finally:
        stop()
        go.touch()
        job.cancel("the test is over")
