"""The active NameNode ends while a gang trains and checkpoints."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from submarine_jobs.errors import ClusterError
from submarine_minicluster import Minicluster
from submarine_runtime.protocol import State
from tests.cluster.ha.test_resourcemanager import COUNTS, check_counts
from tests.cluster.jobs.training import check_result, program, until_step, whole_log, workers
from tests.submission import Submit
from tests.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.full]

STEPS = 120


def test_a_gang_that_checkpoints_loses_nothing(
    both: Minicluster, submit: Submit, go: Path, measure: Callable[..., Any]
) -> None:
    gang = {"roles": workers(2), "policy": "all", "framework": "any"}
    training = submit(program(STEPS, 0.2, hold=str(go)), "gang", **gang)
    single = submit(COUNTS.format(go=str(go)), "single")
    until_step(training, 10)
    until(lambda: b"5" in single.log().data.split(), "lines of the single job")
    before = until(lambda: snapshots(training), "a checkpoint in the job directory")
    killed = both.active("namenode")
    assert measure("failover", lambda: both.fail_over("namenode")) != killed

    def written() -> bool:
        try:
            return snapshots(training) - before != set()
        except ClusterError:
            return False

    measure("next checkpoint in the job directory", lambda: until(written))
    go.touch()
    for job in (training, single):
        assert job.wait(timeout=240).state is State.SUCCEEDED, job.record().events[-8:]
    record = check_result(training, STEPS)
    assert [task.restarts for task in record.tasks] == [0, 0]
    assert not record.missing
    assert not single.record().missing
    check_counts(whole_log(single, "worker:0"))


def snapshots(job: Any) -> set[str]:
    """The files of saved checkpoints in the job directory."""
    storage, path = job.directory.storage, job.directory.file("snapshots")
    return {name for name, _ in storage.walk(path)} if storage.stat(path) else set()
