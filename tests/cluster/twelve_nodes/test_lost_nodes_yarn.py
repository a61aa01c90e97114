"""A gang of twelve on twelve nodes, of which one is lost every minute: nothing of it is lost.

``SUBMARINE_TEST_LOSSES`` and ``SUBMARINE_TEST_LOSS_SECONDS`` shorten it: the number of lost nodes
and the seconds between two of them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import psutil
import pytest

from submarine_jobs.client import Job, Session
from submarine_minicluster import Minicluster, Settings
from submarine_runtime.protocol import State
from tests.cluster.jobs.training import check_result, process_of, program, until_step, workers
from tests.cluster.own_cluster import own_cluster
from tests.submission import submitting
from tests.waiting import until

LOSSES = int(os.environ.get("SUBMARINE_TEST_LOSSES", "20"))
SECONDS = float(os.environ.get("SUBMARINE_TEST_LOSS_SECONDS", "60"))
TASKS = 12
PAUSE = 0.5

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.full,
    pytest.mark.timeout(900 + LOSSES * (SECONDS + 60)),
]


@pytest.fixture
def twelve() -> Iterator[tuple[Minicluster, Session]]:
    # Room for two tasks on each: the others hold those of a lost node.
    settings = Settings(nodes=TASKS, memory_mb=1024, vcores=8, gpus=2, node_expiry=15)
    with own_cluster("twelve", settings, am_cds="off") as found:
        yield found


def node_of(process: psutil.Process) -> str:
    """The NodeManager whose container a process is in."""
    return next(part for part in Path(process.cwd()).parts if part.startswith("nodemanager-"))


def restarts_of(job: Job) -> int:
    return sum(task.restarts for task in job.record().tasks)


def restarted(job: Job, before: int) -> bool:
    return restarts_of(job) > before


def test_a_gang_of_twelve_outlives_a_node_a_minute(
    twelve: tuple[Minicluster, Session], tmp_path: Path
) -> None:
    cluster, session = twelve
    go, steps = tmp_path / "go", max(60, int(LOSSES * SECONDS / PAUSE))
    source = program(steps, PAUSE, hold=str(go))
    roles = workers(TASKS, spread=True)
    with submitting(session, backend="yarn", policy="all", framework="any") as submit:
        job = submit(source, "lost-nodes", roles=roles)
        until(lambda: job.view().record.state is State.RUNNING, lambda: job.view().pending, 600)
        until_step(job, 10)
        for number in range(LOSSES):
            began = time.monotonic()
            restarts = restarts_of(job)
            master = node_of(process_of(job, "coordinator"))
            task = next(
                f"worker:{index}"
                for index in ((number + each) % TASKS for each in range(TASKS))
                if node_of(process_of(job, "agent", f"worker:{index}")) != master
            )
            lost = node_of(process_of(job, "agent", task))
            cluster.fail_node(lost)
            until(partial(restarted, job, restarts), f"a restart of a task of {lost}", 180)
            cluster.start()
            time.sleep(max(0.0, began + SECONDS - time.monotonic()))
        go.touch()
        job.wait(timeout=600)
    record = check_result(job, steps, TASKS)
    assert sum(task.restarts for task in record.tasks) >= LOSSES, record.events
