"""The setting ``port_range``: the ports that the processes of a job bind, and a full range."""

from __future__ import annotations

import functools
import random
import re
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

from submarine_jobs.client import Job, Session
from submarine_jobs.model import JobSpec, Profile, Resources, Role
from submarine_runtime.protocol import EndReason, State
from tests.submission import cancel_unfinished, make_job
from tests.waiting import until


@pytest.fixture
def first_port() -> int:
    """The first of twelve ports that were free just now, apart from those that others reserve."""
    chance = random.Random()
    for _ in range(100):
        first = chance.randrange(40000, 60000)
        with ExitStack() as held:
            try:
                for port in range(first, first + 12):
                    held.enter_context(socket.socket()).bind(("", port))
            except OSError:
                continue
        return first
    raise AssertionError("there are no twelve free ports in a row")


@pytest.fixture
def session(tmp_path: Path, first_port: int) -> Iterator[Session]:
    settings = {"port_range": f"{first_port}-{first_port + 11}"}
    made = Session(Profile(backend="local", state_dir=tmp_path / "state", settings=settings))
    yield made
    cancel_unfinished(made)


def gang(command: str) -> JobSpec:
    worker = Role("worker", 2, Resources(200), command=command)
    return JobSpec("gang", "local", roles=(worker,), program=None, framework="any")


def listening_ports(job: Job) -> set[int]:
    """Return the ports of all processes that were started with the job's directory."""
    found = set()
    for process in psutil.process_iter(["cmdline"]):
        if any(job.id in word for word in process.info["cmdline"] or ()):
            try:
                for one in process.net_connections("tcp"):
                    if one.status in (psutil.CONN_LISTEN, psutil.CONN_NONE):
                        found.add(one.laddr.port)
            except psutil.NoSuchProcess:
                continue
    return found


def first_output(job: Job, task: str) -> str:
    return job.log("stdout", task=task).data.decode()


def test_every_port_of_a_gang_lies_in_the_range(session: Session, first_port: int) -> None:
    job = session.submit(gang("echo port $SUBMARINE_PORT; sleep 60"), None)
    until(lambda: job.record().state is State.RUNNING, seconds=60)
    allowed = range(first_port, first_port + 12)
    # Coordinator and two agents; an agent serves its port when its program has started.
    ports = until(lambda: found if len(found := listening_ports(job)) >= 3 else None, seconds=30)
    assert all(port in allowed for port in ports), ports
    for task in ("worker:0", "worker:1"):
        shown = until(functools.partial(first_output, job, task), seconds=30)
        assert int(re.findall(r"port (\d+)", shown)[0]) in allowed
    job.cancel("seen")


def test_the_ports_of_a_single_task_lie_in_the_range(session: Session, first_port: int) -> None:
    source = "import os, time\nprint(os.environ['SUBMARINE_PORT'], flush=True)\ntime.sleep(60)\n"
    job = session.submit(*make_job(source))
    until(lambda: job.record().state is State.RUNNING, seconds=60)
    ports = until(lambda: listening_ports(job), seconds=30)
    allowed = range(first_port, first_port + 12)
    assert all(port in allowed for port in ports), ports
    assert int(until(lambda: job.log("stdout").data.decode(), seconds=30)) in allowed
    job.cancel("seen")


@pytest.mark.parametrize("free", [0, 1, 2])
def test_a_full_range_ends_a_gang_with_one_sentence(
    session: Session, first_port: int, tmp_path: Path, free: int
) -> None:
    """Without a port for the coordinator, the first agent and the second one."""
    with ExitStack() as held:
        for port in range(first_port, first_port + 12 - free):
            held.enter_context(socket.socket()).bind(("", port))
        job = session.submit(gang(f"echo ran >> {tmp_path}/ran"), None)
        record = job.wait(timeout=60)
    assert (record.state, record.reason) == (State.FAILED, EndReason.LAUNCH_FAILED)
    assert f"No port of port_range {first_port}-{first_port + 11} is free" in record.detail
    assert State.RESTARTING not in {event.state for event in record.events}
    assert not (tmp_path / "ran").exists()


def test_a_full_range_ends_a_single_task_with_one_sentence(
    session: Session, first_port: int
) -> None:
    with ExitStack() as held:
        for port in range(first_port, first_port + 12):
            held.enter_context(socket.socket()).bind(("", port))
        job = session.submit(*make_job("print('ran')"))
        record = job.wait(timeout=60)
    assert (record.state, record.reason) == (State.FAILED, EndReason.LAUNCH_FAILED)
    assert record.detail == (
        f"No port of port_range {first_port}-{first_port + 11} is free on {socket.gethostname()}."
    )
    assert not job.log("stdout").data
