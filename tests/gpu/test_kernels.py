"""A kernel in a container with a real GPU: work, interrupt, restart, and every end of it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.gpu import machine
from tests.gpu.machine import HOLD, NEAR, used
from tests.kernel.remote_kernels import PATIENCE, Remote, execute, kernels_of, local_session
from tests.waiting import until

pytestmark = machine.REAL_GPU

LOOP = """
print("in it", flush=True)
while True:
    for _ in range(100):
        b = a @ a
    torch.cuda.synchronize()
"""


@pytest.fixture
def remote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Remote]:
    with kernels_of(local_session(tmp_path), tmp_path, monkeypatch, "local") as made:
        made.install(gpu=1, memory=f"{machine.HOST_MEMORY}M")
        yield made


def test_interrupt_restart_and_kill_of_a_kernel_on_a_device(remote: Remote) -> None:
    before = {one.uuid: one.used for one in machine.smi()}
    manager, client = remote.start()
    ended, printed = execute(client, HOLD)
    assert ended == "ok"
    device = printed.strip()
    assert remote.job_of(manager).record().tasks[0].gpus == [device]
    assert used(device) > before[device] + 4096

    # Interrupt, in the middle of products that the device computes.
    client.execute(LOOP, stop_on_error=False)
    until(lambda: "in it" in str(client.get_iopub_msg(timeout=PATIENCE)["content"].get("text")))
    manager.interrupt_kernel()
    assert client.get_shell_msg(timeout=PATIENCE)["content"]["ename"] == "KeyboardInterrupt"
    assert execute(client, "print(float((a @ a).float().abs().sum()) > 0)") == ("ok", "True\n")

    # What a cell cannot have leaves a kernel that goes on.
    assert execute(client, "more = torch.zeros(1 << 42, dtype=torch.uint8, device='cuda')")[0] == (
        "OutOfMemoryError"
    )
    assert execute(client, "print(held.numel())") == ("ok", f"{4 << 30}\n")

    # Restart, in the middle again: the memory is free, and the same device is there.
    client.execute(LOOP, stop_on_error=False)
    manager.restart_kernel(now=True)
    client.wait_for_ready(timeout=PATIENCE)
    until(lambda: used(device) <= before[device] + NEAR, "the restart frees the device")
    assert execute(client, HOLD) == ("ok", f"{device}\n")
    assert used(device) > before[device] + 4096

    # The container is shot.
    job = remote.job_of(manager)
    assert job.handle is not None
    os.kill(int(job.handle["pid"]), signal.SIGKILL)
    until(lambda: not manager.is_alive())
    until(lambda: used(device) <= before[device] + NEAR, "the kill frees the device")
