"""HDFS away while the job's own processes are killed; long, so only in ``make test-full``."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from urllib.request import urlopen

import pytest

from submarine_jobs.client import Job, Session
from submarine_jobs.logs import ShippedLog
from submarine_minicluster import Minicluster
from submarine_runtime.protocol import EndReason, State
from tests.cluster.jobs.training import check_result, gone, kill, processes, program, until_step
from tests.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.full]

STEPS = 60


@pytest.mark.parametrize("victim", ["coordinator", "master"])
@pytest.mark.parametrize("moment", ["before the first checkpoint", "in the middle", "at the end"])
def test_a_kill_while_the_namenode_is_away_loses_nothing(
    three: Minicluster, train: Callable[..., Job], go: Path, victim: str, moment: str
) -> None:
    at = {"before the first checkpoint": 2, "in the middle": 30, "at the end": 50}[moment]
    job = train("away", source=program(STEPS, 0.1, hold=str(go)), at=at)
    running = processes(job, "program")
    three.kill("namenode")
    try:
        if moment == "at the end":
            go.touch()
            until(lambda: all(map(gone, running)), "the end of the programs")
        kill(job, victim)
        time.sleep(60)
        waits = processes(job, "coordinator")
    finally:
        three.start()
    go.touch()
    record = job.wait(timeout=240)
    if victim == "master" and not waits:
        # The node of the second attempt had to fetch the files of the application first.
        assert len(set(attempt_nodes(three, job))) == 2, record.detail
        assert record.reason is EndReason.HDFS_UNAVAILABLE, record.detail
        assert "could not localize the files of the job" in record.detail
        return
    assert waits
    record = check_result(job, STEPS)
    if victim == "coordinator":
        assert record.epoch == 1
    else:
        assert any("waited" in event.detail for event in record.events if event.kind == "storage")


def attempt_nodes(cluster: Minicluster, job: Job) -> list[str]:
    """The node of each attempt of the job's application."""
    application = (job.handle or {})["application_id"]
    url = f"{cluster.url('resourcemanager')}/ws/v1/cluster/apps/{application}/appattempts"
    with urlopen(url, timeout=20) as answer:
        found = json.load(answer)["appAttempts"]["appAttempt"]
    return [str(attempt["nodeId"]) for attempt in found]


def test_a_coordinator_that_is_killed_in_a_datanode_outage_is_not_noticed(
    three: Minicluster, train: Callable[..., Job], go: Path
) -> None:
    job = train("datanode", source=program(STEPS, 0.1, hold=str(go)), at=12)
    until_step(job, 1, "worker:1")
    programs = {process.pid for process in processes(job, "program")}
    three.kill("datanode")
    try:
        kill(job, "coordinator")
        time.sleep(60)
        assert {process.pid for process in processes(job, "program")} == programs
    finally:
        three.start()
    go.touch()
    job.wait(timeout=240)
    record = check_result(job, STEPS)
    assert record.epoch == 1
    assert [(task.restarts, task.attempt) for task in record.tasks] == [(0, 1), (0, 1)]


@pytest.mark.parametrize("victim", ["master", "supervisor"])
def test_a_killed_master_or_supervisor_loses_no_more_than_two_seconds_of_the_log(
    own: Session, train: Callable[..., Job], go: Path, victim: str
) -> None:
    source = (
        "import os, time\n"
        f"while not os.path.exists({str(go)!r}):\n"
        "    print('at', time.time(), flush=True)\n    time.sleep(0.1)\n"
    )
    job = train("log-end", source=source, at=0, max_restarts=0)
    until(lambda: len(processes(job, "program")) == 2, "both programs")
    until(lambda: b"at" in job.log("stdout", task="worker:1").data, "some output")
    time.sleep(4)
    programs = processes(job, "program")
    kill(job, victim)
    killed = time.time()
    until(lambda: all(map(gone, programs)), "the end of the programs")
    go.touch()
    if victim == "supervisor":
        record = job.wait(timeout=120)
        # YARN starts a second attempt of the application, as after the death of the master.
        assert record.state is State.SUCCEEDED, record.detail
        told = [event.detail for event in record.events if event.writer == "coordinator-1"]
        assert "The supervisor of the coordinator died." in told
        assert "The application master died." not in told
    else:
        job.wait(timeout=240)
    for task in ("worker:0", "worker:1"):
        whole = partial(_shipped_to, job, task, killed - 2.0)
        until(whole, f"the end of the log of {task}", 20)


def _shipped_to(job: Job, task: str, moment: float) -> bool:
    """Whether the first attempt's shipped log has a line that was printed after ``moment``."""
    log = ShippedLog(job.directory, task, "e1-a1")
    log.refresh()
    text = log.read("stdout", 0, 1 << 20).data.decode()
    return any(float(said) >= moment for said in re.findall(r"^at ([\d.]+)$", text, re.M))
