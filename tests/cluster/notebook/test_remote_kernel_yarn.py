"""A kernel in a container of a real YARN: its GPU, its interrupts and ends, what it waits for."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from submarine_jobs.client import Session
from submarine_jobs.errors import SubmarineError
from submarine_minicluster.cluster import Minicluster
from submarine_runtime.protocol import State
from tests.kernel.kernel_server import losses, server
from tests.kernel.remote_kernels import PATIENCE, Remote, execute, kernels_of, printed
from tests.waiting import until

pytestmark = pytest.mark.cluster


@pytest.fixture
def remote(
    session: Session,
    minicluster_env: Minicluster,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Remote]:
    with kernels_of(session, tmp_path, monkeypatch, "yarn") as made:
        yield made


def test_a_kernel_with_a_gpu_lives_and_its_container_is_killed(remote: Remote) -> None:
    remote.install(gpu=1)
    manager, client = remote.start()
    job = remote.job_of(manager)
    ended, device = execute(client, "import os; print(os.environ['CUDA_VISIBLE_DEVICES'])")
    assert ended == "ok"
    assert device.strip() in {"0", "1", "2", "3"}

    # Another start waits, shows the reason and is interrupted: no job is left.
    remote.install("greedy", gpu=4, start_timeout="10s")
    with pytest.raises(SubmarineError, match=r"(?s)no container in 10 s.*GPU") as error:
        remote.manager("greedy").start_kernel()
    waiting = next(row for row in remote.session.store.newest() if row.name == "kernel-greedy")
    assert waiting.job_id in str(error.value)
    assert remote.session.job(waiting.job_id).wait(PATIENCE).state is State.CANCELLED

    client.execute("print('in it', flush=True)\nimport time\ntime.sleep(1000)")
    until(lambda: "in it" in str(client.get_iopub_msg(timeout=PATIENCE)["content"].get("text")))
    manager.interrupt_kernel()
    assert client.get_shell_msg(timeout=PATIENCE)["content"]["ename"] == "KeyboardInterrupt"
    manager.restart_kernel()
    client.wait_for_ready(timeout=PATIENCE)
    assert remote.job_of(manager).id == job.id
    assert execute(client, "import os; print(os.environ['CUDA_VISIBLE_DEVICES'])")[1] == device

    assert job.handle is not None
    remote.session.backend("yarn").stop(job.handle)
    until(lambda: not manager.is_alive())
    lost = r"container of the kernel is gone\. (The job was cancelled|A user or an admin)"
    until(lambda: re.search(lost, printed(client)))
    assert job.record().state.ended


@pytest.mark.full
def test_a_server_reports_each_loss_with_its_reason_within_three_seconds(remote: Remote) -> None:
    """Ten with a cell that runs and ten without: processes killed, YARN's kill, out of memory."""
    remote.install("far")
    (remote.root / "work").mkdir()
    state = str(remote.session.profile.state_dir)
    cluster = {name: os.environ[name] for name in ("HADOOP_CONF_DIR", "JAVA_HOME", "PATH")}
    told = {**cluster, "SUBMARINE_BACKEND": "yarn", "SUBMARINE_STATE_DIR": state}
    with server(remote.root, env=told) as port:
        found = list(losses(port, "far", remote.session))
    log = (remote.root / "server.log").read_text()[-20_000:]
    assert [loss for loss in found if not (loss.named and loss.seconds <= 3.0)] == [], log
    assert len(found) == 20


@pytest.mark.full
def test_a_container_without_a_server_ends(remote: Remote) -> None:
    remote.install(idle_timeout="4s")
    server, said = remote.serve()
    job = remote.session.job(said["job"])
    assert job.record().state is State.RUNNING
    server.kill()
    assert job.wait(PATIENCE).state is State.SUCCEEDED
