"""How tasks end for good: exit codes, signals, memory, policies, and cancels at every point."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from submarine_jobs.client import Job, Session
from submarine_jobs.model import NamedInput
from submarine_runtime.protocol import EndReason, State
from tests.cluster.jobs.training import (
    check_result,
    processes,
    program,
    right_value,
    task_of,
    workers,
)
from tests.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.full]

#: Worker 1 does something else than train.
ODD = """\
import os, signal, sys, time
if os.environ["SUBMARINE_INDEX"] == "1":
    {what}
"""


def test_exit_codes_and_signals_are_in_the_record(train: Callable[..., Job]) -> None:
    """Two jobs side by side: one ends with a code, the other by a signal."""
    ends: list[tuple[str, EndReason, int | None, int | None]] = [
        ("sys.exit(7)", EndReason.PROGRAM_ERROR, 7, None),
        ("os.kill(os.getpid(), signal.SIGSEGV)", EndReason.KILLED_BY_SIGNAL, None, 11),
    ]
    long = program(400, 0.1)
    jobs = [
        train("ends", at=0, source=ODD.format(what=what) + long, max_restarts=1)
        for what, *_ in ends
    ]
    for job, (_, reason, code, signal) in zip(jobs, ends, strict=True):
        record = job.wait(timeout=150)
        assert (record.state, record.reason) == (State.FAILED, reason)
        task = task_of(job, "worker:1")
        assert (task.restarts, task.signal) == (1, signal)
        assert code is None or (record.exit_code, task.exit_code) == (code, code)
        assert "worker:1" in record.detail


def test_memory_that_yarn_takes_offence_at_is_in_the_record(train: Callable[..., Job]) -> None:
    # Nothing but the whole container's limit can see it: two GB at once, in a container of less.
    greed = "rest = bytearray(b'x') * (2 << 30); time.sleep(60)"
    job = train("greedy", at=0, source=ODD.format(what=greed) + program(400, 0.1), max_restarts=0)
    record = job.wait(timeout=120)
    assert (record.state, record.reason) == (State.FAILED, EndReason.OUT_OF_MEMORY)
    assert "worker:1" in record.detail
    assert "of 128 MiB" in record.detail or "physical memory" in record.detail
    assert "ask for" in record.detail.lower()


def test_the_policy_decides_the_end(train: Callable[..., Job]) -> None:
    jobs = []
    for policy, allowed in (("any", 0.0), ("fraction", 0.5), ("chief", 0.0)):
        what = "time.sleep(600)" if policy == "chief" else "import nothing_of_this_name"
        source = ODD.format(what=what) + program(20)
        jobs.append(train(policy, at=0, source=source, policy=policy, allowed_failures=allowed))
    for job in jobs:
        job.wait(timeout=150)
        record = check_result(job, 20, tasks=("worker:0",))
        assert record.epoch == 1, record.name


def test_a_failure_that_passes_is_tried_again(train: Callable[..., Job]) -> None:
    what = "os.environ['SUBMARINE_ATTEMPT'] == '1' and sys.exit(3)"
    job = train("passing", at=0, source=ODD.format(what=what) + program(20))
    job.wait(timeout=90)
    record = check_result(job, 20)
    assert (record.epoch, task_of(job, "worker:1").restarts) == (1, 1)


@pytest.fixture(scope="module")
def large_input(own: Session, tmp_path_factory: pytest.TempPathFactory) -> str:
    """An input that takes seconds to fetch."""
    source = tmp_path_factory.mktemp("input") / "large"
    with source.open("wb") as file:
        file.truncate(400 << 20)
    storage, root = own.backend().job_root()
    path = f"{root.rpartition('/')[0]}/large-input"
    storage.upload(source, path)
    return storage.url(path)


@pytest.mark.parametrize("point", ["placing", "preparing", "finishing"])
def test_cancel_at_every_other_point(
    train: Callable[..., Job], large_input: str, point: str
) -> None:
    source = program(5)
    fields = {}
    if point == "preparing":
        fields["inputs"] = (NamedInput("DATA", large_input),)
    if point == "finishing":
        source += 'os.truncate(os.open(str(model.parent / "large"), 66), 300 << 20)\n'
    job = train(f"cancel-{point}", at=0, source=source, roles=workers(2), **fields)
    if point == "preparing":
        until(lambda: processes(job, "agent", "worker:0"), "it prepares")
    if point == "finishing":
        last = f"end with {right_value(5)}\n".encode()
        until(lambda: last in job.log("stdout", -400, 400, task="worker:0").data, "it saves")
    record = job.cancel("test")
    assert record.state is State.CANCELLED or (
        point == "finishing" and record.state is State.SUCCEEDED
    )
    until(lambda: not processes(job, "program"), "nothing is left")
    until(lambda: not processes(job, "agent"), "no agent is left")
