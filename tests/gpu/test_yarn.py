"""Jobs of a real YARN on a real GPU: allocation, isolation and waiting."""

from __future__ import annotations

from pathlib import Path

import pytest

from submarine_runtime.protocol import State
from tests.gpu import machine
from tests.gpu.machine import HOLD, HOST_MEMORY, NEAR, PATIENCE, first_line, load, smi, used
from tests.kernel.remote_kernels import Remote, execute
from tests.submission import Submit
from tests.waiting import until

pytestmark = [*machine.REAL_GPU, pytest.mark.cluster]


def test_two_jobs_want_all_gpus_and_a_third_wants_none(submit: Submit, tmp_path: Path) -> None:
    before = smi()
    count, device = len(before), before[0]
    go = tmp_path / "go"
    first = submit(load(go), "first", gpus=count, memory=HOST_MEMORY)
    said = first_line(first)
    assert (sorted(said["visible"].split(",")), said["count"]) == (
        sorted(one.uuid for one in before),
        count,
    )
    # A job without GPUs sees none: the device is not isolated here.
    plain = submit(machine.LOOK, "plain", memory=HOST_MEMORY)
    assert first_line(plain) == ["", 0]
    second = submit(machine.LOOK, "second", gpus=count, memory=HOST_MEMORY)
    sentence = until(
        lambda: said if " holds " in (said := second.record().pending) else None,
        "the second says who has what it waits for",
    )
    print(sentence)
    assert f"queue default has 0 of {count} GPU" in sentence
    assert first.id in sentence
    until(lambda: (first.record().tasks[0].gpu_percent or 0) > 50, "it is measured")
    print(first.record().tasks[0])
    go.touch()
    assert first.wait(PATIENCE).state is State.SUCCEEDED
    visible, seen = first_line(second)
    assert (len(visible.split(",")), seen) == (count, count)
    record = second.wait(PATIENCE)
    assert record.state is State.SUCCEEDED
    print(record.resources)
    until(lambda: used(device.uuid) <= device.used + NEAR, "the device is empty again")


def test_a_kernel_computes_in_its_container(remote: Remote) -> None:
    before = smi()[0]
    remote.install(gpu=len(smi()), memory=f"{HOST_MEMORY}M")
    manager, client = remote.start()
    assert execute(client, f"{HOLD}\nprint(float((a @ a).float().abs().sum()) > 0)")[0] == "ok"
    gpus = remote.job_of(manager).record().tasks[0].gpus
    assert sorted(gpus) == sorted(one.uuid for one in smi())
    assert used(gpus[0]) > 4096
    manager.restart_kernel(now=True)
    until(lambda: used(gpus[0]) <= before.used + NEAR, "the restart frees the device")
    client.wait_for_ready(timeout=PATIENCE)
    assert execute(client, HOLD) == ("ok", f"{gpus[0]}\n")
    job = remote.job_of(manager)
    manager.shutdown_kernel()
    assert job.wait(PATIENCE).state is State.SUCCEEDED
    until(lambda: used(gpus[0]) <= before.used + NEAR, "the end frees the device")
