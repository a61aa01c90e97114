"""Jobs whose owner dies end by themselves, and while it lives they do not; with real processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from submarine_jobs.client import Job, Session
from submarine_jobs.config import load_config
from submarine_jobs.model import Headless
from submarine_runtime.protocol import EndReason, State, layout
from tests.configurations import make_role
from tests.local.agent.agent_processes import AgentProcesses
from tests.local.coordinator.gang_processes import GangProcesses
from tests.waiting import until

LEASE = 4.0
#: Says so when it has run for longer than the lease.
PROGRAM = f"""
import os, pathlib, time
pathlib.Path(os.environ["SUBMARINE_MODEL_DIR"], "half").write_text("done")
began = time.monotonic()
while True:
    time.sleep(0.1)
    if time.monotonic() - began > {LEASE * 1.4}:
        print("still there", flush=True)
"""
OWNER = """
import submarine_jobs, time
common = {"program": "train.py", "backend": "local", "memory": "256M"}
jobs = [submarine_jobs.run("one", **common), submarine_jobs.run("two", worker=2, **common)]
print(*[job.id for job in jobs], flush=True)
time.sleep(3600)
"""


@pytest.fixture
def owner(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    (tmp_path / "train.py").write_text(PROGRAM)
    home = {f"XDG_{word}_HOME": str(tmp_path / word.lower()) for word in ("STATE", "CONFIG")}
    said = Headless(lease=LEASE, barrier=True).to_environment()
    env = {**os.environ, **home, **said}
    env.pop("HADOOP_CONF_DIR", None)
    process = subprocess.Popen(
        [sys.executable, "-c", OWNER], cwd=tmp_path, env=env, stdout=subprocess.PIPE
    )
    yield process
    process.kill()
    process.communicate()


def test_jobs_live_as_long_as_their_owner(
    owner: subprocess.Popen[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One task and a gang of two, told on their ports; then the owner gets SIGKILL."""
    assert owner.stdout is not None
    names = owner.stdout.readline().decode().split()
    assert len(names) == 2, "the owner could not start its jobs"
    for word in ("STATE", "CONFIG"):
        monkeypatch.setenv(f"XDG_{word}_HOME", str(tmp_path / word.lower()))
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    monkeypatch.setenv("SUBMARINE_BACKEND", "local")
    session = Session(load_config().profile)
    jobs = [session.job(name) for name in names]
    try:
        for job in jobs:
            until(partial(lambda job: b"still there" in job.log("stdout").data, job), seconds=120.0)
            assert job.record().state is State.RUNNING
        owner.send_signal(signal.SIGKILL)
        for job in jobs:
            _ended_by_itself(job)
    finally:
        for job in jobs:
            job.cancel()


def _ended_by_itself(job: Job) -> None:
    record = job.wait(120)
    assert (record.state, record.reason) == (State.CANCELLED, EndReason.LEASE_EXPIRED)
    assert record.detail == "The job's lease was not renewed for 4 s."
    assert "model/half" in [output.path for output in record.outputs], "nothing is lost"
    assert not record.missing
    assert {task.state for task in record.tasks} == {State.CANCELLED}


def test_a_job_that_waited_while_its_owner_died_starts_nothing(agents: AgentProcesses) -> None:
    _asked_for_long_ago(agents.job_dir)
    record = agents.run("import pathlib; pathlib.Path('../started').touch()", lease=1.0)
    assert (record.state, record.reason) == (State.CANCELLED, EndReason.LEASE_EXPIRED)
    assert not (agents.scratch() / "started").exists()


def test_a_job_that_waited_long_starts_when_its_owner_lives(agents: AgentProcesses) -> None:
    _asked_for_long_ago(agents.job_dir)
    (agents.job_dir / layout.LEASE).write_text("{}")
    assert agents.run("print('runs')", lease=60.0).state is State.SUCCEEDED


def test_a_gang_that_waited_while_its_owner_died_asks_for_nothing(tmp_path: Path) -> None:
    gang = GangProcesses(tmp_path)
    _asked_for_long_ago(gang.job_dir)
    gang.prepare("print('runs')", [make_role("worker", 2)], lease=1.0)
    try:
        gang.start()
        record = gang.wait()
    finally:
        gang.stop_all()
    assert (record.state, record.reason) == (State.CANCELLED, EndReason.LEASE_EXPIRED)
    assert not list(gang.scratch.glob("tasks/*")), "no agent was ever started"


def _asked_for_long_ago(job_dir: Path) -> None:
    intent = job_dir / layout.INTENT
    intent.write_text(json.dumps({}))
    os.utime(intent, (time.time() - 3600, time.time() - 3600))
