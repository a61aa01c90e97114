"""Faults of a job's own processes, each ending with the right model and a whole log."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import psutil
import pytest

from submarine_jobs.client import Job
from submarine_runtime.protocol import EndReason, State
from tests.cluster.jobs.training import (
    check_result,
    gone,
    kill,
    process_of,
    processes,
    task_of,
    until_step,
    whole_log,
    workers,
)
from tests.local.coordinator.test_distributed_coordinator import AFTER_CHECKPOINT, ENDS
from tests.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.full]

STEPS = 60
TASKS = ("worker:0", "worker:1")


def test_a_killed_worker_costs_a_restart_and_nothing_else(
    train: Callable[..., Job], go: Path
) -> None:
    """The program in one job, the agent in another beside it."""
    jobs = {kind: train(f"kill-{kind}", at=0) for kind in ("program", "agent")}
    for kind, job in jobs.items():
        until_step(job, 12)
        kill(job, kind, "worker:1")
    go.touch()
    for job in jobs.values():
        job.wait(timeout=150)
        record = check_result(job, STEPS)
        assert task_of(job, "worker:1").restarts >= 1
        assert record.epoch >= 1


def test_a_killed_coordinator_comes_back_without_an_effect_on_tasks(
    train: Callable[..., Job], go: Path
) -> None:
    job = train("kill-coordinator", at=12)
    until_step(job, 1, "worker:1")
    address = job.directory.address()
    programs = {process.pid for process in processes(job, "program")}
    assert len(programs) == 2
    kill(job, "coordinator")
    process_of(job, "coordinator")  # is back
    assert {process.pid for process in processes(job, "program")} == programs
    again = job.directory.address()
    assert address is not None
    assert again is not None
    assert again.port == address.port
    go.touch()
    job.wait(timeout=120)
    record = check_result(job, STEPS)
    assert record.epoch == 1
    assert [task.restarts for task in record.tasks] == [0, 0]


def test_a_killed_master_restarts_the_gang_from_its_checkpoint(
    train: Callable[..., Job], go: Path
) -> None:
    job = train("kill-master", at=30)
    before = [event for event in job.record().events if event.writer.startswith("coordinator")]
    kill(job, "master")
    go.touch()
    job.wait(timeout=240)
    record = check_result(job, STEPS)
    assert record.epoch == 2
    told = [(event.writer, event.seq, event.kind) for event in record.events]
    assert {(event.writer, event.seq, event.kind) for event in before} <= set(told)
    assert {event.writer for event in record.events} >= {"coordinator-1", "coordinator-2"}


def test_a_killed_master_restores_one_point_for_tasks_that_train_together(
    train: Callable[..., Job], go: Path
) -> None:
    job = train("kill-master-gang", at=30, framework="pytorch")
    until(lambda: any(e.kind == "snapshot" for e in job.record().events), "a snapshot")
    kill(job, "master")
    go.touch()
    job.wait(timeout=240)
    record = check_result(job, STEPS)
    assert record.epoch == 2
    (point,) = [event for event in record.events if event.kind == "restore_point"]
    assert point.writer == "coordinator-2"
    assert point.detail in record.notes
    begun = [re.findall(r"^begin at (\d+)$", whole_log(job, task), re.M) for task in TASKS]
    assert begun[0] == begun[1]
    assert int(begun[0][-1]) > 0


def test_an_exception_that_comes_again_without_progress_ends_the_job(
    train: Callable[..., Job], tmp_path: Path
) -> None:
    source = ENDS.format(scratch=str(tmp_path)) + AFTER_CHECKPOINT.format(
        name="ckpt-7", every=False
    )
    job = train("same-error", at=0, source=source, framework="pytorch")
    record = job.wait(timeout=240)
    assert (record.reason, record.epoch) == (EndReason.PROGRAM_ERROR, 2), record.events[-12:]
    assert "worker:1: ValueError: bad" in record.detail
    assert "the same error again" in record.detail
    told = [event for event in record.events if event.kind in ("restart", "task_failed")]
    assert [event.data["rule"] for event in told] == ["progress", "same_cause"]


def test_a_task_that_hangs_is_lost_and_replaced(train: Callable[..., Job], go: Path) -> None:
    job = train("hang", lost_after=5.0)
    agent = process_of(job, "agent", "worker:1")
    old = process_of(job, "program", "worker:1")
    agent.send_signal(signal.SIGSTOP)
    try:
        until(lambda: task_of(job, "worker:1").restarts >= 1, "worker:1 is given up")
        # The agent cannot fence what it does not see; YARN has taken its container before.
        until(
            lambda: [one for one in processes(job, "program", "worker:1") if one != old],
            "another program",
        )
        assert gone(old)
    finally:
        with suppress(psutil.NoSuchProcess):
            agent.send_signal(signal.SIGCONT)
    go.touch()
    job.wait(timeout=150)
    check_result(job, STEPS)


def test_cancel_while_the_gang_waits_and_while_it_runs(train: Callable[..., Job]) -> None:
    waiting = train("cancel-waiting", at=0, roles=workers(3, memory=1500), gang_timeout=600.0)
    until(lambda: waiting.record().pending, "a pending sentence")
    assert waiting.cancel("test").state is State.CANCELLED
    running = train("cancel-running")
    assert running.cancel("test").state is State.CANCELLED
    for kind in ("program", "agent"):
        for job in (waiting, running):
            until(partial(lambda *of: not processes(*of), job, kind), f"no {kind} is left")


def test_an_import_error_everywhere_is_not_retried(train: Callable[..., Job]) -> None:
    job = train("import-error", at=0, source="import nothing_of_this_name")
    record = job.wait(timeout=120)
    assert (record.state, record.reason) == (State.FAILED, EndReason.IMPORT_ERROR)
    assert record.epoch == 1
    assert [task.restarts for task in record.tasks] == [0, 0]
    assert record.failure is not None
    assert record.failure.frames[-1].cell == "[3]"
