"""Sudden memory: the NodeManager ends the container before the agent looks at the program.

The cluster's NodeManager looks every 100 ms, and the program stops its agent until the SIGTERM of
the NodeManager has come, so that the agent never samples the memory itself.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from submarine_jobs.client import Session
from submarine_minicluster import Minicluster, Settings
from submarine_minicluster.hadoop import config
from submarine_runtime.protocol import EndReason, State
from tests.cluster.jobs.training import workers
from tests.cluster.own_cluster import own_profile
from tests.submission import make_job

pytestmark = pytest.mark.full
ATTEMPTS = 10
GREEDY = """
import os, signal, time
if os.environ["SUBMARINE_INDEX"] == {index!r}:
    agent = os.getppid()
    def terminated():
        line = next(line for line in open(f"/proc/{{agent}}/status") if line.startswith("ShdPnd"))
        return int(line.split()[1], 16) & 1 << signal.SIGTERM - 1
    os.kill(agent, signal.SIGSTOP)
    if not os.fork():
        while not terminated():
            time.sleep(0.002)
        os.kill(agent, signal.SIGCONT)
        os._exit(0)
    x = b"a" * (900 << 20)
time.sleep(60)
"""


@pytest.fixture(scope="module")
def strict() -> Iterator[Session]:
    """A session on a cluster whose NodeManager looks at the memory every 100 ms."""
    parent = Path(tempfile.mkdtemp(prefix="submarine-test-"))
    cluster = Minicluster("strict", parent=parent)
    plain = config.nodemanager
    try:
        with pytest.MonkeyPatch.context() as patch:
            interval = {"yarn.nodemanager.container-monitor.interval-ms": "100"}
            patch.setattr(config, "nodemanager", lambda *words: {**plain(*words), **interval})
            cluster.start(Settings())
        with own_profile(cluster.environ(), parent / "state") as profile:
            yield Session(profile)
    finally:
        cluster.stop()
        shutil.rmtree(parent, ignore_errors=True)


@pytest.mark.parametrize("gang", [False, True], ids=["one task", "gang"])
def test_sudden_memory_is_out_of_memory_with_the_amount(strict: Session, gang: bool) -> None:
    changes: dict[str, Any] = {"roles": workers(2), "max_restarts": 0} if gang else {}
    for attempt in range(ATTEMPTS):
        source = GREEDY.format(index="1" if gang else "0")
        spec, bundle = make_job(source, f"greedy-{attempt}", backend="yarn", **changes)
        record = strict.submit(spec, bundle).wait(timeout=180)
        said = f"{attempt}: {record.reason} {record.detail}"
        assert (record.state, record.reason) == (State.FAILED, EndReason.OUT_OF_MEMORY), said
        assert re.search(r"used \d[\d.]* (of|[MG]i?B of) \d[\d.]* [MG]i?B", record.detail), said
        assert not gang or "worker:1" in record.detail
