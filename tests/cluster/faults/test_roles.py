"""Each kind of task is killed in turn; what its loss costs depends on what it is for."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from submarine_jobs.client import Job
from submarine_jobs.model import Resources, Role
from tests.cluster.jobs.training import check_result, kill, processes, program, task_of, whole_log
from tests.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.full]

SERVING = """\
import os, time
while os.environ["SUBMARINE_ROLE"] in ("ps", "tensorboard"):
    time.sleep(1)
"""


def test_each_kind_of_task_is_killed(train: Callable[..., Job], go: Path) -> None:
    size = Resources(memory=128)
    kinds = {"chief": "tracked", "worker": "tracked", "ps": "untracked", "evaluator": "tracked",
             "tensorboard": "sidecar"}  # fmt: skip
    roles = tuple(Role(name, 1, size, kind=kind) for name, kind in kinds.items())
    source = SERVING + program(30, 0.1, hold=str(go))
    job = train("kinds", at=5, source=source, roles=roles, max_restarts=4)
    # A sidecar has no effect on the end.
    kill(job, "program", "tensorboard:0")
    until(lambda: task_of(job, "tensorboard:0").restarts == 1, "the sidecar is back")
    for name in ("chief", "worker", "ps", "evaluator"):
        dead = kill(job, "program", f"{name}:0")

        def back(task: str = f"{name}:0", old: int = dead.pid) -> bool:
            return [one.pid != old for one in processes(job, "program", task)] == [True]

        until(back, f"{name} is back")
    go.touch()
    job.wait(timeout=150)
    record = check_result(job, 30, tasks=("chief:0", "worker:0", "evaluator:0"))
    restarts = {task.task: task.restarts for task in record.tasks}
    assert all(count == 1 for count in restarts.values()), restarts


def test_a_snapshot_is_put_back_into_a_new_container(train: Callable[..., Job], go: Path) -> None:
    job = train("put-back", at=5)

    def taken() -> bool:
        return any((e.kind, e.task) == ("snapshot", "worker:1") for e in job.record().events)

    until(taken, "a snapshot of worker:1")
    # What an agent has not shipped when it is killed is lost, as the record then says.
    until(lambda: "begin at 0" in whole_log(job, "worker:1"), "its log")
    kill(job, "agent", "worker:1")
    go.touch()
    job.wait(timeout=150)
    check_result(job, 60)
    began = [
        [int(step) for step in re.findall(r"^begin at (\d+)$", whole_log(job, task), re.M)]
        for task in ("worker:0", "worker:1")
    ]
    assert began[0] == [0]
    assert began[1][0] == 0
    # From a checkpoint that a snapshot had, not from the beginning and not from the end.
    assert 0 < began[1][1] < 60
    assert began[1][1] % 5 == 0
    assert len(began[1]) == 2


def test_a_stopped_program_is_alive_until_its_time_is_up(train: Callable[..., Job]) -> None:
    """Its agent cannot know whether it thinks: ``--timeout`` is what ends it."""
    job = train("stopped", at=5, timeout=20.0)
    for process in processes(job, "program"):
        os.kill(process.pid, signal.SIGSTOP)
    record = job.wait(timeout=120)
    assert record.reason is not None
    assert (record.state.value, record.reason.value) == ("FAILED", "timed_out")
    assert [task.restarts for task in record.tasks] == [0, 0]
    assert "step 5" in whole_log(job, "worker:0")
    until(lambda: not processes(job, "program"), "nothing is left")


def test_a_disk_that_is_full_once_costs_a_restart(train: Callable[..., Job]) -> None:
    job = train("disk-full", at=0, source=FULL_DISK + program())
    job.wait(timeout=120)
    record = check_result(job)
    told = [event for event in record.events if event.kind == "restart"]
    assert [event.data.get("reason") for event in told] == ["disk_full"]
    assert task_of(job, "worker:1").restarts == 1


#: A file system of 64 KiB in a name space of its own, which is gone with the process.
FULL_DISK = """\
import ctypes, os
if (os.environ["SUBMARINE_INDEX"], os.environ["SUBMARINE_ATTEMPT"]) == ("1", "1"):
    libc = ctypes.CDLL(None, use_errno=True)
    def checked(result):
        if result:
            raise RuntimeError(os.strerror(ctypes.get_errno()))
    NEW_NAMESPACE, NEW_USER, PRIVATE = 0x20000, 0x10000000, 0x44000
    checked(libc.unshare(NEW_NAMESPACE | (NEW_USER if os.geteuid() else 0)))
    checked(libc.mount(b"none", b"/", None, PRIVATE, None))
    os.makedirs("small", exist_ok=True)
    checked(libc.mount(b"none", b"small", b"tmpfs", 0, b"size=64k"))
    with open("small/data", "wb", buffering=0) as file:
        while True:
            file.write(bytes(16384))
"""
