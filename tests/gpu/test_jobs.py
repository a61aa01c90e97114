"""Jobs on a real GPU: measurements, claims, ends of programs, and the doctor."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from submarine_jobs.client import Job, Session
from submarine_jobs.model import Profile
from submarine_jobs.outputs import Row, read_metrics
from submarine_runtime.protocol import EndReason, State
from tests.gpu import machine
from tests.gpu.machine import NEAR, PATIENCE, first_line, load, smi, used
from tests.headless.notebook_runs import LOAD as LOAD_MAGICS, NotebookRuns, cell, read
from tests.submission import Submit, submitting
from tests.waiting import until

pytestmark = machine.REAL_GPU


@pytest.fixture
def submit(tmp_path: Path) -> Iterator[Submit]:
    """Submit a program that uses a GPU to the local backend."""
    session = Session(Profile(backend="local", state_dir=tmp_path / "state"))
    with submitting(session, memory=machine.HOST_MEMORY, gpus=1) as made:
        yield made
    for job in session.jobs():
        session.job(job.job_id).wait(PATIENCE)


def agent_of(job: Job) -> int:
    assert job.handle is not None
    return int(job.handle["pid"])


def test_use_and_memory_are_what_nvidia_smi_says(submit: Submit, tmp_path: Path) -> None:
    job = submit(load(tmp_path / "go"), "busy")
    said = first_line(job)
    assert said["count"] == 1
    assert said["uuid"] == said["visible"]

    def alike() -> Row | None:
        told = next(one for one in smi() if one.uuid == said["uuid"])
        rows = [row for row in read_metrics(job.directory) if row.gpus]
        print(told, rows[-1].gpus if rows else None)
        if not rows or told.percent < 90:
            return None
        ((device, percent, held),) = rows[-1].gpus
        assert device == told.uuid
        if percent is None or held is None or percent < 90 or abs(held - told.used) > NEAR:
            return None
        return rows[-1]

    row = until(alike, "a sample says what nvidia-smi says")
    assert (row.gpu_memory or 0) > 4096
    task = job.record().tasks[0]
    assert task.gpus == [said["uuid"]]
    (tmp_path / "go").touch()
    record = job.wait(PATIENCE)
    assert record.state is State.SUCCEEDED, record.detail
    task = record.tasks[0]
    assert (task.gpu_percent or 0) >= 90
    assert abs((task.gpu_memory or 0) - (row.gpu_memory or 0)) <= NEAR
    print("host memory", task.memory_peak, "hints", record.hints)


def test_the_next_job_waits_for_the_devices_and_says_for_what(
    submit: Submit, tmp_path: Path
) -> None:
    everything = [one.uuid for one in smi()]
    first = submit(machine.LOOK + "import time\ntime.sleep(600)", "first", gpus=len(everything))
    visible, count = first_line(first)
    assert (sorted(visible.split(",")), count) == (sorted(everything), len(everything))
    second = submit(machine.LOOK, "second")
    sentence = until(
        lambda: "".join(task.detail for task in second.record().tasks), "it says that it waits"
    )
    print(sentence)
    assert "GPU" in sentence
    assert str(agent_of(first)) in sentence
    # An agent that is shot gives the device back, and its program goes with it.
    os.kill(agent_of(first), signal.SIGKILL)
    assert first.wait(PATIENCE).reason is EndReason.AGENT_LOST
    record = second.wait(PATIENCE)
    assert record.state is State.SUCCEEDED, record.detail
    assert record.tasks[0].gpus[0] in everything
    assert not record.tasks[0].detail


def test_a_job_that_is_shot_leaves_nothing_on_the_device(submit: Submit, tmp_path: Path) -> None:
    before = {one.uuid: one.used for one in smi()}
    job = submit(load(tmp_path / "go"), "shot")
    device = first_line(job)["uuid"]
    until(lambda: used(device) > before[device] + 4096, "it holds 4 GiB")
    os.kill(agent_of(job), signal.SIGKILL)
    until(lambda: used(device) <= before[device] + NEAR, "the device is empty again")
    assert job.wait(PATIENCE).reason is EndReason.AGENT_LOST


def test_a_full_device_is_reported_with_its_figures(submit: Submit) -> None:
    job = submit(machine.FILL, "fill")
    record = job.wait(PATIENCE)
    print(record.reason, record.detail, record.hints)
    assert record.reason is EndReason.PROGRAM_ERROR
    assert "OutOfMemoryError: CUDA out of memory." in record.detail
    assert any("--memory does not change" in hint for hint in record.hints)


def test_a_job_without_gpus_may_use_here_what_its_notebook_may(submit: Submit) -> None:
    job = submit(machine.LOOK, "plain", gpus=0)
    assert first_line(job) == [os.environ.get("CUDA_VISIBLE_DEVICES"), len(smi())]
    task = job.wait(PATIENCE).tasks[0]
    assert (task.gpus, task.gpu_percent) == ([], None)


TRAIN = """%%submarine --only --file train.py
import torch

x = torch.randn(1 << 16, 256, device="cuda")
y = (x @ torch.randn(256, 1, device="cuda")).sigmoid().round()
model = torch.nn.Sequential(
    torch.nn.Linear(256, 4096), torch.nn.ReLU(), torch.nn.Linear(4096, 1)
).cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(400):
    loss = torch.nn.functional.binary_cross_entropy_with_logits(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 19:
        print(f"loss: {loss.item():.4f}", flush=True)
device, final = torch.cuda.get_device_name(), loss.item()
"""


def test_a_headless_notebook_trains_on_the_device(tmp_path: Path) -> None:
    runs = NotebookRuns(tmp_path)
    source = runs.notebook(
        "train",
        LOAD_MAGICS,
        TRAIN,
        "job = %submarine run train --program train.py --return device,final --gpu 1 "
        f"--memory {machine.HOST_MEMORY}M",
        "%submarine wait train\njob.result['device'], job.result['final']",
        "print(job.metrics()[['gpu_percent', 'gpu_memory', 'loss']].to_string())",
    )
    ran = runs.run("submarine", "run", source, "-o", "out.ipynb")
    assert ran.returncode == 0, ran.stderr
    document = read(runs.folder / "out.ipynb")
    [result] = [
        out for out in cell(document, "cell-3").outputs if out.output_type == "execute_result"
    ]
    device, final = eval(result.data["text/plain"])
    print(device, final, cell(document, "cell-4").outputs)
    assert final < 0.3
    assert "loss" in str(cell(document, "cell-4").outputs)


def test_the_doctor_knows_driver_and_frameworks(tmp_path: Path) -> None:
    runs = NotebookRuns(tmp_path)
    told = runs.run("submarine", "doctor", "--json")
    print(told.stdout, told.stderr)
    checks = {check["name"]: check for check in json.loads(told.stdout)["checks"]}
    sentence = checks["gpu driver"]["sentence"]
    name = subprocess.run(
        ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()[0]
    assert f"{len(smi())} GPU(s), {name}" in sentence
    assert "torch for CUDA" in sentence
