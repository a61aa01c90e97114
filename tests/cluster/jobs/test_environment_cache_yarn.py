"""YARN's cache of localized files keeps an unpacked environment while a job uses it."""

from __future__ import annotations

import sys
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from submarine_jobs.client import Session
from submarine_minicluster import Settings
from submarine_runtime.protocol import State
from tests.cluster.own_cluster import own_cluster
from tests.submission import submitting
from tests.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.full]
#: Milliseconds between two clean-ups of the cache, which may keep no unused file.
INTERVAL = 1000
LIMIT = 120.0
PROGRAM = """
import os, time
print(os.path.realpath("../python-env"), flush=True)
while not os.path.exists({go!r}):
    time.sleep(0.1)
"""


@pytest.fixture
def session() -> Iterator[Session]:
    properties = (
        "yarn.nodemanager.localizer.cache.target-size-mb=0",
        f"yarn.nodemanager.localizer.cache.cleanup.interval-ms={INTERVAL}",
        "yarn.nodemanager.delete.debug-delay-sec=0",
    )
    with own_cluster("cache", Settings(properties=properties)) as (_cluster, found):
        yield found


def test_yarn_removes_an_environment_with_its_archive(session: Session, tmp_path: Path) -> None:
    archive, go = tmp_path / "env.tar.gz", tmp_path / "go"
    with tarfile.open(archive, "w:gz") as tar:
        link = tarfile.TarInfo("bin/python3")
        link.type, link.linkname = tarfile.SYMTYPE, sys.executable
        tar.addfile(link)
    changes = {"python_env": f"archive:{archive}", "python": "python-env/bin/python3"}
    with submitting(session, backend="yarn") as submit:
        job = submit(PROGRAM.format(go=str(go)), "cached", **changes)
        until(lambda: job.log("stdout").data.endswith(b"\n"), "the program runs", LIMIT)
        place = Path(job.log("stdout").data.decode().strip())
        assert place.parent.parent.name == "filecache"
        time.sleep(5 * INTERVAL / 1000)
        assert (place / "bin" / "python3").is_symlink()
        go.touch()
        assert job.wait(LIMIT).state is State.SUCCEEDED
        until(lambda: not place.parent.exists(), "YARN has cleaned its cache", LIMIT)
