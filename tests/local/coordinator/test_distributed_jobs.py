"""Distributed jobs on the local backend: the same coordinator and agents, as processes."""

from __future__ import annotations

import html
import json
import os
import signal
import sys
import tarfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from submarine_jobs import display
from submarine_jobs.backends import Stage
from submarine_jobs.backends.local import LocalBackend, process as local_process
from submarine_jobs.client import Job, Session
from submarine_jobs.errors import UsageError
from submarine_jobs.model import JobSpec, Localization, NamedInput, Profile, Resources, Role
from submarine_jobs.program import Cell, build_bundle
from submarine_runtime.protocol import EndReason, State
from tests.submission import cancel_unfinished
from tests.waiting import until

SMALL = Resources(200)
SAY = 'echo "$SUBMARINE_ROLE $SUBMARINE_INDEX"'


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    made = Session(Profile(backend="local", state_dir=tmp_path / "state"))
    yield made
    cancel_unfinished(made)


def spec(*roles: Role, **fields: Any) -> JobSpec:
    return JobSpec(
        "gang", "local", roles=roles, program=None, python=sys.executable, framework="any", **fields
    )


def workers(command: str, count: int = 2, **fields: Any) -> Role:
    return Role("worker", count, SMALL, command=command, **fields)


def scratch_of(session: Session, job: Job) -> Path:
    return session.profile.state_dir.absolute() / "local" / job.id


def out(job: Job, task: str) -> str:
    return job.log("stdout", task=task).data.decode()


def test_variables_of_rdma_are_those_of_the_user(session: Session) -> None:
    """A named interface that is Ethernet turns InfiniBand off; ``--env`` has precedence."""
    names = ("NCCL_SOCKET_IFNAME", "NCCL_IB_DISABLE", "NCCL_IB_HCA", "UCX_NET_DEVICES")
    show = "; ".join(f'echo "{name}=${name}"' for name in names)
    plain = session.submit(spec(workers(show), network_interface="lo"), None)
    own = {"NCCL_IB_DISABLE": "0", "NCCL_IB_HCA": "mlx5_1:1", "UCX_NET_DEVICES": "mlx5_1:1"}
    changed = session.submit(spec(workers(show), network_interface="lo", env=own), None)
    for job, values in ((plain, ["=lo", "1", "", ""]), (changed, ["=lo", *own.values()])):
        assert job.wait(60).state is State.SUCCEEDED
        wanted = [f"{name}={value}" for name, value in zip(names, values, strict=True)]
        for number in range(2):
            assert out(job, f"worker:{number}").splitlines() == wanted


def test_roles_run_together_with_their_own_commands(session: Session, tmp_path: Path) -> None:
    data = tmp_path / "data.txt"
    data.write_text("input")
    word = tmp_path / "word"
    word.write_text("brought")
    packed = tmp_path / "words.tar.gz"
    with tarfile.open(packed, "w:gz") as archive:
        archive.add(word, "inside/word")
    evaluator = Role(
        "evaluator", 1, SMALL,
        command=f"{SAY}; cat %input_path% deep/word words/inside/word",
    )  # fmt: skip
    serving = Role("ps", 1, SMALL, command="sleep 600", kind="untracked")
    job = session.submit(
        spec(
            workers(f"{SAY}; cat $SUBMARINE_INPUT_DATA; sleep 0.3"),
            evaluator,
            serving,
            inputs=(NamedInput("DATA", str(data)),),
            localization=(Localization(str(word), "deep/word"),),
            archives=(Localization(str(packed), "words"),),
            policy="all",
        ),
        None,
    )
    record = job.wait(60)
    assert (record.state, record.detail) == (State.SUCCEEDED, "")
    assert out(job, "worker:0") == "worker 0\ninput"
    assert out(job, "worker:1") == "worker 1\ninput"
    assert out(job, "evaluator:0") == "evaluator 0\ninputbroughtbrought"
    assert sorted(task.task for task in record.tasks) == [
        *("evaluator:0", "ps:0", "worker:0", "worker:1"),
    ]
    assert record.resources["requested"]["worker"]["instances"] == 2
    # Nothing of it goes on, and nothing is left in the state directory by the next submit.
    scratch = scratch_of(session, job)
    until(lambda: not local_process.processes_in(scratch))
    session.backend().observe({job.id: job.handle or {}})
    assert not scratch.exists()


def test_an_input_elsewhere_or_nowhere_is_refused_and_leaves_nothing(
    session: Session, tmp_path: Path
) -> None:
    for uri, sentence in (
        ("hdfs://nn/data", "is not in the file system of the job directory"),
        (str(tmp_path / "gone"), "there is no file://"),
    ):
        with pytest.raises(UsageError, match=sentence):
            session.submit(spec(workers("true"), inputs=(NamedInput("A", uri),)), None)
    with pytest.raises(UsageError, match="There is no job gone-20261121-0a1b to resume"):
        session.submit(spec(workers("true"), resume_from="gone-20261121-0a1b"), None)
    assert session.jobs() == []
    assert not list((session.profile.state_dir / "jobs").glob("2*/*"))


@pytest.mark.parametrize("moment", [0.0, 0.3, 0.8, 1.5])
def test_cancel_ends_coordinator_and_all_agents(session: Session, moment: float) -> None:
    job = session.submit(spec(workers("sleep 600", 3)), None)
    time.sleep(moment)
    record = job.cancel("enough")
    assert record.state is State.CANCELLED
    assert "enough" in record.detail
    until(lambda: not local_process.processes_in(scratch_of(session, job)))


def test_stop_from_outside_ends_every_process(session: Session) -> None:
    job = session.submit(spec(workers("sleep 4321 & sleep 4321", 2)), None)
    until(lambda: job.record().state is State.RUNNING)
    scratch = scratch_of(session, job)
    family: list[psutil.Process] = []

    def all_sleep() -> bool:
        with suppress(psutil.NoSuchProcess):
            family[:] = [
                process
                for agent in local_process.processes_in(scratch)
                for process in (agent, *agent.children(recursive=True))
            ]
            return sum("4321" in process.cmdline() for process in family) >= 4
        return False

    until(all_sleep)
    backend = LocalBackend(session.profile)
    found = backend.find(job.id)
    assert found is not None
    backend.stop(found)
    _, alive = psutil.wait_procs(family, timeout=60)
    assert not alive
    backend.stop(found)
    seen = backend.observe({job.id: found})[job.id]
    assert seen.stage is Stage.ENDED


def test_a_job_whose_supervisor_and_coordinator_are_killed_is_closed(session: Session) -> None:
    job = session.submit(spec(workers(f"{SAY}; sleep 600")), None)
    until(lambda: job.record().state is State.RUNNING)
    scratch = scratch_of(session, job)
    processes = local_process.processes_in(scratch)
    for verb in ("supervise", "coordinator"):
        for process in processes:
            if verb in process.info["cmdline"]:
                os.kill(process.pid, signal.SIGKILL)
    until(lambda: job.record().state.ended)
    record = job.record()
    assert (record.state, record.reason) == (State.FAILED, EndReason.COORDINATOR_LOST)
    assert sorted(task.task for task in record.tasks) == ["worker:0", "worker:1"]
    assert {task.state for task in record.tasks} == {State.FAILED}
    until(lambda: not local_process.processes_in(scratch))


def test_a_submit_whose_answer_was_lost_finds_its_coordinator(session: Session) -> None:
    job = session.submit(spec(workers("sleep 600")), None)
    scratch = scratch_of(session, job)
    handle = json.loads((scratch / "handle.json").read_text())
    (scratch / "handle.json").unlink()
    found = LocalBackend(session.profile).find(job.id)
    assert found is not None
    assert found["pid"] == handle["pid"]
    job.cancel("found")


MEET = """
import os, socket, time
place = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
if os.environ["RANK"] == "0":
    with socket.create_server(place) as server:
        server.accept()[0].close()
else:
    deadline = time.monotonic() + 60
    while True:
        try:
            socket.create_connection(place).close()
            break
        except OSError:
            assert time.monotonic() < deadline
            time.sleep(0.05)
"""


def test_tasks_that_never_met_are_reported(session: Session) -> None:
    def submit(program: str, **fields: Any) -> Job:
        role = Role("worker", 2, SMALL)
        asked = replace(spec(role, policy="all", **fields), framework="pytorch", program="main.py")
        return session.submit(asked, build_bundle([Cell("1", program, label="[1]")]))

    apart, failed = submit("pass"), submit("pass", require_collective=True)
    together = submit(MEET, require_collective=True)
    record = apart.wait(90)
    assert record.state is State.SUCCEEDED
    (sentence,) = record.warnings
    assert "Trainer(num_nodes=2)" in sentence
    assert f"Warning: {sentence}" in display.text(apart.view())
    assert sentence in html.unescape(display.html(apart.view()))
    record = failed.wait(90)
    assert (record.state, record.reason) == (State.FAILED, EndReason.NOT_COLLECTIVE)
    assert "init_process_group()" in record.detail
    record = together.wait(90)
    assert (record.state, record.warnings) == (State.SUCCEEDED, [])


def test_processes_of_one_task_that_never_met_are_reported(session: Session) -> None:
    role = Role("worker", 1, SMALL, processes=2)
    asked = replace(spec(role), framework="pytorch", program="main.py")
    jobs = [
        session.submit(
            replace(asked, require_collective=required),
            build_bundle([Cell("1", program, label="[1]")]),
        )
        for program, required in (("pass", False), ("pass", True), (MEET, True))
    ]
    records = [job.wait(90) for job in jobs]
    reasons = [record.reason for record in records]
    expected = [EndReason.SUCCEEDED, EndReason.NOT_COLLECTIVE, EndReason.SUCCEEDED]
    assert reasons == expected
    assert [len(record.warnings) for record in records] == [1, 0, 0]
