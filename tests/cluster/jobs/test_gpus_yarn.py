"""Devices, measurements and memory of jobs on a real YARN, whose nodes count GPUs and have none."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from submarine_jobs.client import Job, Session
from submarine_jobs.model import Resources, Role
from submarine_jobs.outputs import read_metrics
from submarine_runtime.gpus import device_numbers
from submarine_runtime.protocol import EndReason, JobRecord, State
from tests.submission import Submit, make_job
from tests.waiting import until

pytestmark = pytest.mark.cluster
no_devices = pytest.mark.skipif(bool(device_numbers()), reason="this machine has GPUs: tests/gpu")

LIMIT = 180.0
HOLD = """
import os, time
print(os.environ["NM_HOST"] + ":" + os.environ["NM_PORT"], flush=True)
print(os.environ["CUDA_VISIBLE_DEVICES"], flush=True)
for second in range({seconds}):
    time.sleep(1)
    print(f"loss: {{1 / (second + 1):.4f}} - accuracy: 0.5", flush=True)
"""


def shown(job: Job) -> tuple[str, set[str]]:
    """Node and devices that the program found."""
    node, devices = job.log("stdout").data.decode().splitlines()[:2]
    return node, set(devices.split(","))


def running(job: Job) -> JobRecord:
    """The record once the program has said what it found."""
    deadline = time.monotonic() + LIMIT
    while job.log("stdout").data.count(b"\n") < 3:
        record = job.record()
        assert not record.state.ended, record.detail
        assert time.monotonic() < deadline, record.pending
        time.sleep(0.3)
    return job.record()


@no_devices
def test_jobs_of_a_node_have_numbers_of_their_own(submit: Submit) -> None:
    jobs = [submit(HOLD.format(seconds=600), f"gpu{n}", gpus=2) for n in range(2)]
    records = [running(job) for job in jobs]
    by_node: dict[str, list[str]] = {}
    for job, record in zip(jobs, records, strict=True):
        node, devices = shown(job)
        assert set(record.tasks[0].gpus) == devices
        assert all(0 <= int(device) < 4 for device in devices)
        by_node.setdefault(node, []).extend(devices)
        assert any("No driver" in event.detail for event in record.events)
    assert all(len(set(devices)) == len(devices) for devices in by_node.values())
    # An agent that is shot holds nothing: the next one on its node may have the same numbers.
    node, devices = shown(jobs[0])
    pid = records[0].tasks[0].pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    assert jobs[0].wait(LIMIT).state is not State.SUCCEEDED
    for number in range(8):
        again = submit(HOLD.format(seconds=600), f"again{number}", gpus=2)
        running(again)
        where, got = shown(again)
        held = set(by_node[where]) - (devices if where == node else set())
        assert not got & held
        if where == node:
            return
        again.cancel("another node")
    pytest.fail("no job came to the node of the first one")


#: Long enough for advice, and until it has been looked at.
MEASURED = """
import os, time
print("begin", flush=True)
second = 0
while second < 32 or not os.path.exists({go!r}):
    time.sleep(1)
    second += 1
    print(f"loss: {{1 / second:.4f}} - accuracy: 0.5", flush=True)
"""


@pytest.fixture(scope="module")
def go(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("measured") / "go"


@pytest.fixture(scope="module")
def measured(session: Session, go: Path) -> Iterator[Job]:
    """A job that is measured while the next tests go on."""
    source = MEASURED.format(go=str(go))
    job = session.submit(*make_job(source, "measured", backend="yarn", gpus=1, memory=2048))
    yield job
    if not job.record().state.ended:
        job.cancel("the tests are over")


@pytest.mark.usefixtures("measured")
@no_devices
def test_tasks_of_a_gang_have_numbers_and_metrics_of_their_own(submit: Submit) -> None:
    say = (
        'echo "$NM_HOST:$NM_PORT"; echo $CUDA_VISIBLE_DEVICES; '
        'for n in 1 2 3 4 5 6; do sleep 1; echo "loss: 0.$n"; done'
    )
    workers = Role("worker", 2, Resources(256, gpus=1), command=say)
    job = submit("pass", "gang", roles=(workers,), framework="any", policy="all")
    record = job.wait(LIMIT)
    assert record.state is State.SUCCEEDED, record.detail
    by_node: dict[str, list[str]] = {}
    for task in record.tasks:
        node, devices = job.log("stdout", task=task.task).data.decode().splitlines()[:2]
        assert devices.split(",") == task.gpus
        by_node.setdefault(node, []).extend(task.gpus)
        rows = read_metrics(job.directory, task.task)
        assert len(rows) >= 3
        assert rows[-1].scalars == {"loss": 0.6}
    assert sum(map(len, by_node.values())) == 2
    assert all(len(set(devices)) == len(devices) for devices in by_node.values())


@pytest.mark.usefixtures("measured")
def test_sudden_memory_is_reported_with_advice(submit: Submit) -> None:
    """900 MB at once: YARN looks every 3 s, so most of these would once have been its kills."""
    program = "import time\ntime.sleep({})\nx = bytearray(900 << 20)\ntime.sleep(60)\n"
    jobs = [submit(program.format(1 + n * 0.7), f"stroke{n}", memory=256) for n in range(4)]
    for record in [job.wait(LIMIT) for job in jobs]:
        assert record.reason is EndReason.OUT_OF_MEMORY
        assert "of 256 MiB: ask for" in record.detail


def test_metrics_of_a_job_on_the_cluster(measured: Job, go: Path) -> None:
    job = measured
    until(lambda: len(job.metrics()) >= 3, "metrics of a running job", LIMIT)
    assert not job.record().state.ended
    go.touch()
    record = job.wait(LIMIT)
    frame = job.metrics()
    assert set(frame["task"]) == {"worker:0"}
    assert len(frame) >= 12
    last = job.log("stdout").data.decode().splitlines()[-1]
    assert last == f"loss: {frame['loss'].dropna().iloc[-1]:.4f} - accuracy: 0.5"
    assert 3 < frame["memory"].max() < 200
    assert device_numbers() or frame["gpu_percent"].isna().all()
    assert len(record.hints) == 1
    assert "of 2 GB: ask for" in record.hints[0]
