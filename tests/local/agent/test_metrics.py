"""What is measured of real programs by a real agent, and the devices that they get."""

from __future__ import annotations

import itertools
import os
import pwd
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from submarine_jobs.access import JobDirectory
from submarine_jobs.client import Job, Session
from submarine_jobs.model import JobSpec, Profile, Resources, Role
from submarine_jobs.outputs import Row, read_metrics
from submarine_jobs.storage import LocalStorage
from submarine_runtime.gpus import LockDirectories, device_numbers
from submarine_runtime.protocol import EndReason, State
from tests.local.agent.agent_processes import AgentProcesses
from tests.subprocesses.gpus.gpu_node import build_driver, device_line
from tests.waiting import until

BUSY = """
import os, sys, time
held = bytearray(os.urandom(1 << 20) * 120)
pid = os.fork()
print("Epoch 1/2", flush=True)
end, step = time.monotonic() + 7, 0
while time.monotonic() < end or not os.path.exists("go"):
    sum(range(100000))
    step += 1
    if pid and not step % 50:
        print(f"\\r{step}/100000 [>...] - loss: {1 / step:.4f}", end="", flush=True)
if not pid:
    os._exit(0)
os.waitpid(pid, 0)
print("report:progress:0.87", file=sys.stderr, flush=True)
"""


def rows_of(agents: AgentProcesses) -> list[Row]:
    return read_metrics(JobDirectory(LocalStorage(), str(agents.job_dir)))


def test_what_a_program_uses_is_there_while_it_runs_and_after(agents: AgentProcesses) -> None:
    agent = agents.start(BUSY, ship_interval=1.0, memory=1024)
    early = until(lambda: [row for row in rows_of(agents) if row.cpu_percent is not None])
    assert agent.poll() is None
    (agents.scratch() / "program/go").touch()
    agents.finish(agent)
    rows, record = rows_of(agents), agents.record()
    assert [row for row in rows if row.cpu_percent is not None][: len(early)] == early
    assert len(rows) >= 4
    gaps = [b.seconds - a.seconds for a, b in itertools.pairwise(rows[:-1])]
    # Every two seconds; later where the machine is busy with other things, which take CPU too.
    assert 1.9 < statistics.median(gaps) < 6
    assert max(row.cpu_percent or 0 for row in rows) > 5
    assert 120 < max(row.memory or 0 for row in rows) < 700
    assert 0 < rows[-1].scalars["loss"] <= 0.02
    assert [row.progress for row in rows][-1] == 0.87
    assert all(row.gpu_percent is None and row.gpus == () for row in rows)
    task = record.tasks[0]
    assert task.progress == record.progress == 0.87
    assert task.cpu_seconds is not None
    assert task.cpu_seconds > 0.3  # of seven, where the machine has nothing else to do
    assert task.memory_peak is not None
    assert task.memory_peak > 120
    assert f"{task.task}/e1-a1/samples" not in record.logs


def test_a_short_program_has_its_numbers_too(agents: AgentProcesses) -> None:
    record = agents.run(
        "import time\nend = time.process_time() + 0.5\nwhile time.process_time() < end: pass"
    )
    assert record.tasks[0].cpu_seconds is not None
    assert record.tasks[0].cpu_seconds >= 0.5
    rows = rows_of(agents)
    assert rows[0].seconds == 0
    assert rows[-1].seconds >= 0.4
    # On a busy machine the last row may follow a periodic one too closely to have a percentage.
    assert any(row.cpu_percent is not None for row in rows)


STROKE = """
import time
print("ready", flush=True)
time.sleep({pause})
b = bytearray(2000 << 20)
b[:: 4096] = b"x" * len(b[:: 4096])
print("survived", flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("pause", [0.3, 3.1])
def test_memory_taken_at_a_stroke_is_found_at_once(agents: AgentProcesses, pause: float) -> None:
    agent = agents.start(STROKE.format(pause=pause), memory=300)
    agents.wait_for_log(b"ready")
    began = time.monotonic()
    agents.finish(agent)
    record = agents.record()
    assert record.reason is EndReason.OUT_OF_MEMORY
    assert "of 300 MiB: ask for" in record.detail
    # It was found, and the test did not wait for the program to end by itself.
    assert time.monotonic() - began < pause + 60


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A node with three devices and a driver; named by this test alone."""
    (tmp_path / "driver").mkdir()
    library = build_driver(tmp_path / "driver")
    file = tmp_path / "devices"
    name = f"GPU-{os.getpid()}-{tmp_path.parent.name}"
    file.write_text("".join(device_line(f"{name}-{n}", 3, 1000 * (n + 1)) for n in range(3)))
    monkeypatch.setenv("FAKE_NVML", str(file))
    monkeypatch.setenv("LD_LIBRARY_PATH", str(library.parent))
    yield file
    for directory in (*LockDirectories.sticky, LockDirectories.shared):
        for lock in Path(directory).glob(f"*{name}-*"):
            lock.unlink()


ASK = """
import os, sys, time
print(os.environ.get("CUDA_VISIBLE_DEVICES"), flush=True)
print(os.environ.get("LD_LIBRARY_PATH"), flush=True)
time.sleep({seconds})
"""


def test_two_tasks_of_a_node_have_devices_of_their_own(
    agents: AgentProcesses, node: Path, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    other = AgentProcesses(tmp_path / "other")
    try:
        first = agents.start(ASK.format(seconds=600), gpus=2)
        agents.wait_for_log(b"driver\n")
        shown = agents.log("stdout").decode().splitlines()[0]
        second = other.start(ASK.format(seconds=3), gpus=1)
        other.finish(second)
        record = other.record()
        assert record.state is State.SUCCEEDED
        task = record.tasks[0]
        assert len(task.gpus) == 1
        assert not set(task.gpus) & set(shown.split(","))
        assert other.log("stdout").decode().splitlines()[0] == task.gpus[0]
        assert (task.gpu_percent, task.gpu_memory) == (3.0, 3000.0)
        measured = [row for row in rows_of(other) if row.gpus]
        assert measured
        assert measured[-1].gpus == ((task.gpus[0], 3.0, 3000.0),)
        # A container that is shot gives its devices back: now one task may have all three.
        first.kill()
        (tmp_path / "third").mkdir()
        third = AgentProcesses(tmp_path / "third")
        assert len(third.run(ASK.format(seconds=0), gpus=3).tasks[0].gpus) == 3
    finally:
        other.stop_all()


def test_a_wait_for_a_device_is_reported_and_can_be_cancelled(node: Path, tmp_path: Path) -> None:
    session = Session(Profile(backend="local", state_dir=tmp_path / "state"))

    def submit(name: str, gpus: int) -> Job:
        role = Role("worker", 1, Resources(200, gpus=gpus), command="echo here; sleep 600")
        spec = JobSpec(name, "local", roles=(role,), program=None, python=sys.executable)
        return session.submit(spec, None)

    first = submit("first", 3)
    try:
        until(lambda: first.log("stdout").data)
        second = submit("second", 1)
        said = until(lambda: second.record().tasks and second.record().tasks[0].detail)
        assert first.handle is not None
        holder = first.handle["pid"]
        user = pwd.getpwuid(os.getuid()).pw_name
        assert said == f"Waits for 1 GPU: this node has 3, held by process {holder} ({user})."
        second.cancel("enough")
        record = second.wait(60)
        assert (record.state, record.reason) == (State.CANCELLED, EndReason.CANCELLED)
        assert "enough" in record.detail
        assert not second.log("stdout").data
    finally:
        first.cancel("the test is over")
        first.wait(60)


def test_more_than_the_node_has_is_said_clearly(agents: AgentProcesses, node: Path) -> None:
    record = agents.run("print(1)", gpus=4)
    assert record.reason is EndReason.LAUNCH_FAILED
    assert "asks for 4 GPUs and this node shows 3" in record.detail
    assert not (agents.scratch() / "worker-0.stdout.log").exists()


@pytest.mark.skipif(bool(device_numbers()), reason="this machine has GPUs")
def test_counted_devices_where_there_is_no_driver(agents: AgentProcesses) -> None:
    record = agents.run(ASK.format(seconds=0), gpus=2)
    task = record.tasks[0]
    assert len(set(task.gpus)) == 2
    assert all(name.isdigit() for name in task.gpus)
    assert agents.log("stdout").decode().splitlines()[0] == ",".join(task.gpus)
    assert any("No driver" in event.detail for event in record.events)
    assert task.gpu_percent is None


def test_tasks_of_a_gang_have_devices_and_metrics_each(node: Path, tmp_path: Path) -> None:
    session = Session(Profile(backend="local", state_dir=tmp_path / "state"))
    say = 'echo $CUDA_VISIBLE_DEVICES; for n in 1 2 3 4 5 6; do sleep 1; echo "loss: 0.$n"; done'
    role = Role("worker", 3, Resources(200, gpus=1), command=say)
    spec = JobSpec(
        "gang", "local", roles=(role,), program=None, python=sys.executable, framework="any"
    )
    job = session.submit(spec, None)
    try:
        record = job.wait(90)
    finally:
        job.cancel("the test is over")
    assert record.state is State.SUCCEEDED
    assert len({name for task in record.tasks for name in task.gpus}) == 3
    rows = read_metrics(job.directory)
    for task in record.tasks:
        assert job.log("stdout", task=task.task).data.decode().splitlines()[0] == task.gpus[0]
        mine = [row for row in rows if row.task == task.task]
        assert len(mine) >= 3
        assert mine[-1].scalars == {"loss": 0.6}
        assert [gpu.device for gpu in mine[-1].gpus] == task.gpus
        assert task.gpu_percent == 3.0
        assert task.cpu_seconds is not None
