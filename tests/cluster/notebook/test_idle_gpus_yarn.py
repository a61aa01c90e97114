"""``--idle-gpu`` of kernels and notebook servers in containers of YARN, without a real GPU."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from submarine_jobs.client import Job, Session
from submarine_jobs.commands import execute
from submarine_jobs.config import load_config
from submarine_minicluster import Settings
from submarine_runtime.files import replace_file
from submarine_runtime.protocol import EndReason, State
from tests.cluster.conftest import Shell
from tests.cluster.own_cluster import own_cluster
from tests.kernel.notebook_client import HttpClient
from tests.kernel.remote_kernels import PATIENCE, execute as execute_cell, kernels_of
from tests.subprocesses.gpus.gpu_node import build_driver, device_line
from tests.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.full]

#: A cell that saves a file and goes on without its GPU.
SAVING = """
import os, time
with open(os.path.join(os.environ["SUBMARINE_CHECKPOINT_DIR"], "weights"), "w") as file:
    file.write("saved")
time.sleep(1000)
"""


class Node:
    """The devices that the containers of a cluster find."""

    def __init__(self, session: Session, devices: Path) -> None:
        self.session = session
        self._devices = devices

    def use(self, percent: int) -> None:
        """Set the use of both devices."""
        lines = "".join(device_line(f"GPU-yarn-{name}", percent) for name in "ab")
        replace_file(self._devices, lines.encode())


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A cluster whose containers find a stand-in for the driver's library."""
    place = tmp_path_factory.mktemp("driver")
    devices = place / "devices"
    libraries = build_driver(place).parent
    variables = f"yarn.nodemanager.admin-env=FAKE_NVML={devices},LD_LIBRARY_PATH={libraries}"
    settings = Settings(gpus=2, properties=(variables,))
    with own_cluster("idle", settings) as (cluster, session), pytest.MonkeyPatch.context() as patch:
        for key, value in cluster.environ().items():
            patch.setenv(key, value)
        yield Node(session, devices)


@pytest.fixture
def shell(node: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """A command line of this cluster in an empty directory, while its GPUs are used."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("SUBMARINE_STATE_DIR", str(node.session.profile.state_dir))
    monkeypatch.delenv("SUBMARINE_BACKEND", raising=False)
    monkeypatch.chdir(tmp_path)
    node.use(90)
    return Shell()


def warnings(job: Job) -> list[str]:
    """The events about idle GPUs."""
    return [event.detail for event in job.record().events if event.kind == "idle_gpu"]


def test_a_kernel_is_reported_or_ends_after_a_save(
    node: Node, shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with kernels_of(node.session, tmp_path, monkeypatch, "yarn") as remote:
        for action in ("warn", "end"):
            words = ["--memory", "400M", "--gpu", "1", "--idle-gpu", f"10s:{action}"]
            place = ["--prefix", str(tmp_path), "--name", action]
            execute(["kernel", "install", *place, *words], shell)
        (warned, told), (ended, client) = remote.start("warn"), remote.start("end")
        job = remote.job_of(ended)
        cell = client.execute(SAVING)
        devices = [job.record().tasks[0].gpus for job in (job, remote.job_of(warned))]
        assert sorted(devices) == [["GPU-yarn-a"], ["GPU-yarn-b"]]
        node.use(1)
        until(lambda: not ended.is_alive(), "the end of the kernel")
        record = job.record()
        assert (record.reason, record.state) == (EndReason.IDLE_GPU, State.CANCELLED)
        assert "The GPUs of kernel:0 were below 5 % for 1" in str(record.detail)
        assert "checkpoints/weights" in {output.path for output in record.outputs}
        saved = job.directory.file("checkpoints/weights")
        assert job.directory.storage.read(saved) == b"saved"
        replies = iter(lambda: client.get_shell_msg(timeout=PATIENCE), None)
        reply = next(one for one in replies if one["parent_header"]["msg_id"] == cell)
        assert "The GPUs of the job were idle for longer" in reply["content"]["evalue"]
        [warning] = until(lambda: warnings(remote.job_of(warned)), "the warning")
        assert "The GPUs of kernel:0 were below 5 % for 1" in warning
        assert execute_cell(told, "print(6 * 7)") == ("ok", "42\n")


def test_a_notebook_server_is_reported_or_ends_after_a_save(node: Node, shell: Shell) -> None:
    jobs = []
    for action in ("warn", "end"):
        words = ["--memory", "1G", "--gpu", "1", "--idle", "never", "--idle-gpu", f"10s:{action}"]
        value = execute(["notebook", "start", *words], shell).value
        jobs.append(shell.session(load_config()).job(value["job_id"]))
        client = HttpClient(jobs[-1], value["page"], value["token"])
        client.save("mine.ipynb", f"saved before {action}")
    node.use(1)
    warned, ended = jobs
    record = ended.wait(PATIENCE)
    assert (record.reason, record.state) == (EndReason.IDLE_GPU, State.CANCELLED), record.detail
    assert "The GPUs of notebook:0 were below 5 % for 1" in str(record.detail)
    saved = ended.directory.file("checkpoints/mine.ipynb")
    assert b"saved before end" in ended.directory.storage.read(saved)
    assert b"JupyterLab was stopped." in ended.log("stdout").data
    [warning] = until(lambda: warnings(warned), "the warning")
    assert "The GPUs of notebook:0 were below 5 % for 1" in warning
    assert warned.record().state is State.RUNNING
    execute(["notebook", "stop", warned.id], shell)
    assert warned.wait(PATIENCE).state is State.CANCELLED
