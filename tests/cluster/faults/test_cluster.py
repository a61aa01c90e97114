"""Faults of the cluster itself under distributed jobs: nodes, ResourceManager, NameNode, queues."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from submarine_jobs.client import Job, Session
from submarine_jobs.model import JobSpec, Resources, Role
from submarine_minicluster import Minicluster
from submarine_runtime.protocol import EndReason, State
from tests.cluster.jobs.training import (
    check_result,
    kill,
    process_of,
    processes,
    program,
    task_of,
    workers,
)
from tests.local.coordinator.library_training import (
    EVERY,
    Reports,
    points,
    source_of,
    undisturbed,
)
from tests.torch_tree import torch_environment
from tests.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.full]

STEPS = 60


def node_of(job: Job, kind: str, task: str | None = None) -> str:
    """The NodeManager whose container a process of the job is in."""
    directory = process_of(job, kind, task).cwd()
    return next(part for part in Path(directory).parts if part.startswith("nodemanager-"))


def test_a_node_that_is_lost_for_good(
    three: Minicluster, train: Callable[..., Job], go: Path
) -> None:
    job = train("node-lost", roles=workers(2, spread=True), at=30)
    master = node_of(job, "coordinator")
    held = {index: node_of(job, "agent", f"worker:{index}") for index in (0, 1)}
    assert held[0] != held[1]
    lost = next(index for index, node in held.items() if node != master)
    three.fail_node(held[lost])
    go.touch()
    try:
        job.wait(timeout=150)
        record = check_result(job, STEPS)
        assert task_of(job, f"worker:{lost}").restarts >= 1
        assert record.epoch >= 1
    finally:
        three.start()


def test_a_node_lost_before_the_first_checkpoint_restarts_tasks_that_train_together(
    three: Minicluster, train: Callable[..., Job], go: Path
) -> None:
    source = program(STEPS, every=1000, hold=str(go))
    roles = workers(2, spread=True)
    job = train("node-lost-early", roles=roles, source=source, framework="pytorch")
    master = node_of(job, "coordinator")
    held = {index: node_of(job, "agent", f"worker:{index}") for index in (0, 1)}
    assert held[0] != held[1]
    three.fail_node(next(node for node in held.values() if node != master))
    try:
        until(lambda: any(e.kind == "restart" for e in job.record().events), "a restart")
        go.touch()
        job.wait(timeout=150)
        record = check_result(job, STEPS)
        assert record.epoch == 2
        (restart,) = [event for event in record.events if event.kind == "restart"]
        assert restart.data["rule"] in ("uncounted", "counted")
        assert "progress" not in restart.detail
        assert not [event for event in record.events if event.kind == "restored"]
    finally:
        three.start()


@pytest.mark.timeout(1800)
def test_a_node_lost_during_a_checkpoint_restores_the_parts_of_all_workers(
    three: Minicluster, train: Callable[..., Job], tmp_path: Path
) -> None:
    reports = Reports(tmp_path / "barrier", lambda: job.record().events)
    job = train(
        "node-lost-fsdp",
        at=0,
        source=source_of("steps", reports.barrier, 80, pause=1.0),
        roles=workers(2, 700, spread=True),
        framework="pytorch",
        python=str(torch_environment() / "bin/python3"),
    )
    assert reports.begun(1) == 0
    master = node_of(job, "coordinator")
    held = {index: node_of(job, "agent", f"worker:{index}") for index in (0, 1)}
    assert held[0] != held[1]
    lost = next(index for index, node in held.items() if node != master)

    def uploaded(index: int) -> bool:
        place = job.directory.file(f"snapshots/worker-{index}/e1-a1")
        return job.directory.storage.stat(place) is not None

    reports.wait_for(lambda: uploaded(0) and uploaded(1))
    step = int(reports.said("step", 1) or 0) // EVERY * EVERY + EVERY
    reports.wait_for(lambda: reports.said(f"saving-{step}", 1, lost) is not None)
    three.fail_node(held[lost])
    try:
        begun = reports.begun(2)
        reports.check_found(2)
        record = job.wait(timeout=600)
        assert record.state is State.SUCCEEDED, record.detail
        assert 0 < begun <= step
        assert reports.losses()[-1] == pytest.approx(undisturbed("steps", 80), rel=1e-6)
        assert task_of(job, f"worker:{lost}").restarts == 1
        found = [(point["rule"], point["step"]) for point in points(record)]
        assert found == [("union", [begun])]
    finally:
        three.start()


def test_node_manager_and_resource_manager_restart_under_a_job(
    three: Minicluster, train: Callable[..., Job], go: Path
) -> None:
    job = train("daemons", source=program(STEPS, 0.1, hold=str(go)))
    # The ResourceManager is stopped first: a running one would declare the node lost after
    # `node_expiry` (6 s here), which the start of a NodeManager exceeds on a busy machine.
    three.kill("resourcemanager")
    time.sleep(2)
    three.restart(node_of(job, "agent", "worker:1"))
    go.touch()
    job.wait(timeout=150)
    record = check_result(job, STEPS)
    assert record.epoch == 1, [event for event in record.events if event.kind == "restart"]
    assert [task.restarts for task in record.tasks] == [0, 0]


@pytest.mark.parametrize("away", [6, 60])
def test_the_namenode_is_away_for_a_while(
    three: Minicluster, train: Callable[..., Job], go: Path, away: int
) -> None:
    job = train("namenode", source=program(STEPS, 0.1 + away / STEPS, hold=str(go)))
    three.kill("namenode")
    time.sleep(away)
    three.start()
    go.touch()
    job.wait(timeout=180)
    record = check_result(job, STEPS)
    assert [task.restarts for task in record.tasks] == [0, 0]


def test_a_real_preemption_is_no_failure(own: Session, train: Callable[..., Job], go: Path) -> None:
    # Two on each node, one beside the master: all that there is, of which queue default is
    # promised one half. What the other job asks for fits nowhere else.
    job = train("preempted", roles=workers(5, memory=900), at=20, max_restarts=1)
    urgent = own.submit(
        JobSpec(
            "urgent", "yarn", queue="gpu", program=None, python=sys.executable,
            roles=(Role(resources=Resources(memory=300), command="sleep 1"),),
        ),
        None,
    )  # fmt: skip
    try:
        assert urgent.wait(timeout=180).state is State.SUCCEEDED
    finally:
        if not urgent.record().state.ended:
            urgent.cancel("the test is over")
    go.touch()
    job.wait(timeout=180)
    record = check_result(job, STEPS, 5)
    said = " ".join(event.detail for event in record.events)
    assert "The scheduler preempted its container" in said
    assert sum(task.restarts for task in record.tasks) >= 1


def test_a_master_that_dies_in_every_attempt_leaves_a_closed_job(
    train: Callable[..., Job],
) -> None:
    job = train("masters", at=3)
    kill(job, "master")
    until(lambda: processes(job, "coordinator"), "the second master")
    until(lambda: job.directory.read_json("claim-2.json"), "claim-2.json")
    kill(job, "master")
    record = until(lambda: r if (r := job.record()).state.ended else None, "the end")
    assert (record.state, record.reason) == (State.FAILED, EndReason.MASTER_LOST)
    assert "died 2 times" in record.detail
    assert sorted(task.task for task in record.tasks) == ["worker:0", "worker:1"]
    assert record.missing
    until(lambda: not processes(job, "program"), "nothing is left")


def test_a_role_with_a_node_label_runs_on_its_node(train: Callable[..., Job], go: Path) -> None:
    role = Role("worker", 2, Resources(memory=128), node_label="fast")
    job = train("labelled", roles=(role,), at=2)
    assert {node_of(job, "agent", f"worker:{index}") for index in (0, 1)} == {"nodemanager-2"}
    go.touch()
    job.wait(timeout=120)
    check_result(job, STEPS)
