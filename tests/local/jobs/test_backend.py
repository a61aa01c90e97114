"""The local backend on this machine, and whole jobs through the session."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from submarine_jobs.backends import Observation, Stage, Submission
from submarine_jobs.backends.local import LocalBackend
from submarine_jobs.client import Job, Session
from submarine_jobs.errors import ClusterError, RefusedError
from submarine_jobs.model import JobSpec, Profile, Resources, Role
from submarine_jobs.submit import submit
from submarine_runtime.protocol import AgentConfig, EndReason, State, from_json
from tests.local.agent.agent_processes import AgentProcesses, zip_of
from tests.waiting import until

FOREVER = "import time\nprint('up', flush=True)\nwhile True: time.sleep(0.1)\n"


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    made = Session(Profile(backend="local", state_dir=tmp_path / "state"))
    yield made
    backend = made.backend()
    for handle in _handles(tmp_path):
        backend.stop(handle)


def _handles(root: Path) -> list[dict[str, object]]:
    found = sorted((root / "state/local").glob("*/handle.json"))
    return [json.loads(path.read_text()) for path in found]


def run(session: Session, program: str, **spec: object) -> Job:
    values: dict[str, object] = {"name": "digits", "backend": "local", "python": sys.executable}
    return submit(session, JobSpec(**{**values, **spec}), zip_of({"main.py": program}))  # type: ignore[arg-type]


def observe(session: Session, job: Job) -> Observation:
    (handle,) = _handles(session.profile.state_dir.parent)
    return session.backend().observe({job.id: handle})[job.id]


def test_a_job_from_submit_to_record(session: Session) -> None:
    job = run(session, "print('hello')\n")
    record = job.wait(timeout=90)
    assert record.state is State.SUCCEEDED
    assert record.job_dir.endswith(f"/{job.id}")
    assert job.log("stdout").data == b"hello\n"
    names = [phase.name for phase in record.phases]
    assert names == ["upload", "queue", "localizing", "start", "first_line", "run", "save"]
    assert all(phase.end is not None for phase in record.phases)


def test_the_agent_is_nobodys_child_and_private(session: Session) -> None:
    job = run(session, FOREVER)
    (handle,) = _handles(session.profile.state_dir.parent)
    agent = psutil.Process(int(str(handle["pid"])))
    assert agent.ppid() != os.getpid()
    assert os.getsid(agent.pid) != os.getsid(0)
    scratch = Path(str(handle["scratch"]))
    assert scratch.stat().st_mode & 0o077 == 0
    assert (scratch / "secret.json").stat().st_mode & 0o077 == 0
    assert observe(session, job).stage is Stage.RUNNING
    job.cancel("enough")
    assert job.wait(timeout=90).state is State.CANCELLED


def test_the_job_outlives_its_submitter(tmp_path: Path) -> None:
    script = textwrap.dedent(
        f"""
        import os, sys
        sys.path.insert(0, {str(Path(__file__).parents[3])!r})
        from pathlib import Path
        from tests.local.jobs.test_backend import *
        session = Session(Profile(backend="local", state_dir=Path({str(tmp_path / "state")!r})))
        job = run(session, "import time; time.sleep(1); print('late')")
        print(job.id, flush=True)
        os.kill(os.getpid(), 9)
        """
    )
    done = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, timeout=90)
    assert done.returncode == -signal.SIGKILL
    session = Session(Profile(backend="local", state_dir=tmp_path / "state"))
    job = session.job(done.stdout.decode().strip())
    assert job.wait(timeout=90).state is State.SUCCEEDED
    assert job.log("stdout").data == b"late\n"


def test_a_killed_agent_is_found_out(session: Session) -> None:
    job = run(session, FOREVER)
    until(lambda: job.log("stdout").data)
    (handle,) = _handles(session.profile.state_dir.parent)
    os.kill(int(str(handle["pid"])), signal.SIGKILL)
    until(lambda: observe(session, job).stage is Stage.ENDED)
    seen = observe(session, job)
    assert seen.reason is EndReason.AGENT_LOST
    record = job.wait(timeout=90)
    assert (record.state, record.reason) == (State.FAILED, EndReason.AGENT_LOST)


def test_stop_ends_everything_and_may_be_repeated(session: Session) -> None:
    job = run(session, "import signal\nsignal.signal(15, signal.SIG_IGN)\n" + FOREVER)
    until(lambda: job.log("stdout").data)
    (handle,) = _handles(session.profile.state_dir.parent)
    children = psutil.Process(int(str(handle["pid"]))).children(recursive=True)
    assert len(children) == 2
    session.backend().stop(handle)
    session.backend().stop(handle)
    until(lambda: not any(_runs(child) for child in children))
    assert job.wait(timeout=90).reason is EndReason.KILLED_ON_CLUSTER


def _runs(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_a_job_of_another_host_is_not_judged(session: Session) -> None:
    handle = {"pid": os.getpid(), "start_time": 1, "host": "elsewhere", "scratch": "/x"}
    backend = session.backend()
    seen = backend.observe({"a": handle})["a"]
    assert seen.stage is Stage.UNKNOWN
    assert "elsewhere" in seen.detail
    with pytest.raises(ClusterError, match="elsewhere"):
        backend.stop(handle)


def test_a_pid_that_was_given_anew_is_not_ours(session: Session) -> None:
    victim = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    host = socket.gethostname()
    handle = {"pid": victim.pid, "start_time": 1, "host": host, "scratch": "/x", "boot": ""}
    backend = session.backend()
    assert backend.observe({"a": handle})["a"].stage is Stage.ENDED
    backend.stop(handle)
    assert victim.poll() is None
    victim.kill()
    victim.wait()


def test_scratch_goes_when_the_record_is_there(session: Session) -> None:
    job = run(session, "print(1)")
    job.wait(timeout=90)
    scratch = session.profile.state_dir / "local" / job.id
    until(lambda: not scratch.exists() or observe(session, job).stage is Stage.ENDED)
    run(session, "print(2)").wait(timeout=90)
    assert not scratch.exists()


def _submission(session: Session, agents: AgentProcesses) -> Submission:
    backend = session.backend()
    scratch = agents.prepare("import time\ntime.sleep(1)\n")
    agent = from_json(AgentConfig, json.loads((scratch / "agent.json").read_text()))
    for name in ("secret.json", "bundle.zip"):
        (agents.job_dir / name).write_bytes((scratch / name).read_bytes())
    spec = JobSpec("name", "local", python=sys.executable)
    storage, _ = backend.job_root()
    return Submission(
        spec, backend.plan(spec), storage, str(agents.job_dir), agent, str(agents.zip)
    )


def test_a_repeated_submit_finds_the_first(session: Session, agents: AgentProcesses) -> None:
    submission = _submission(session, agents)
    backend = LocalBackend(session.profile)
    first = backend.submit(submission)
    assert backend.submit(submission) == first
    assert LocalBackend(session.profile).find(submission.agent.record.job_id) == first
    (session.profile.state_dir / "local" / submission.agent.record.job_id / "handle.json").unlink()
    found = backend.submit(submission)
    assert (found["pid"], found["start_time"]) == (first["pid"], first["start_time"])
    until((agents.job_dir / "record.json").exists)
    assert agents.record().state is State.SUCCEEDED


def test_plans(session: Session) -> None:
    backend = session.backend()
    spec = JobSpec("a", "local", python=sys.executable)
    assert not backend.plan(spec).errors
    assert backend.plan(spec).containers[0]["memory"] == 2048
    greedy = replace(spec, roles=(Role(resources=Resources(memory=1 << 30, gpus=99)),))
    warnings = backend.plan(greedy).warnings
    assert any("MiB" in warning for warning in warnings)
    if not list(Path("/dev").glob("nvidia[0-9]*")):
        assert any("99 GPU" in warning for warning in warnings)
    many = backend.plan(replace(spec, roles=(Role(instances=2), Role("ps", 1, kind="untracked"))))
    assert not many.errors
    assert [(entry["role"], entry["count"]) for entry in many.containers] == [
        ("worker", 2),
        ("ps", 1),
    ]
    assert "3 processes and a coordinator" in many.placement
    impossible: tuple[dict[str, Any], ...] = (
        {"python_env": "archive:/x.tar.gz"},
        {"docker_image": "python:3.12"},
        {"node_label": "gpu"},
    )
    for words in impossible:
        (refused,) = backend.plan(replace(spec, roles=(Role(**words),))).errors
        assert "local backend" in refused
    absent = replace(spec, python="/nowhere/python")
    assert "/nowhere/python" in backend.plan(absent).errors[0]
    with pytest.raises(RefusedError):
        run(session, "print(1)", python="/nowhere/python")


def test_find_refuses_what_is_no_job_id(session: Session) -> None:
    assert session.backend().find("nobody-20261121-0a1b") is None
    with pytest.raises(ValueError, match="is not a job id"):
        session.backend().find("../../etc")


def test_the_kernels_own_variables_do_not_reach_the_program(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    monkeypatch.setenv("JPY_PARENT_PID", "1")
    monkeypatch.setenv("KEPT", "yes")
    job = run(session, "import os\nprint(sorted(os.environ))\n")
    job.wait(timeout=90)
    names = job.log("stdout").data.decode()
    assert "KEPT" in names
    assert "MPLBACKEND" not in names
    assert "JPY_PARENT_PID" not in names


def test_cancel_in_each_state(session: Session) -> None:
    """From right after the submit to the very end; the job always ends, and only once."""
    for delay in (0.0, 0.05, 0.1, 0.2, 0.4):
        job = run(session, "import time\ntime.sleep(0.25)\n")
        time.sleep(delay)
        job.cancel("test")
        record = job.wait(timeout=90)
        assert record.state in (State.CANCELLED, State.SUCCEEDED)
        states = [event.state for event in record.events if event.state and event.state.ended]
        assert len(states) <= 1  # none where the closer wrote the record
