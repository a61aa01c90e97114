"""A kernel in a container, from its start to its end, and the loss of each part."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest
from jupyter_client.blocking.client import BlockingKernelClient

from submarine_jobs.errors import SubmarineError, UsageError
from submarine_kernel.remote import KernelRequest
from submarine_kernel.remote.submission import submit_kernel
from submarine_runtime.files import replace_file
from submarine_runtime.protocol import EndReason, State
from tests.kernel.remote_kernels import (
    NAME,
    PATIENCE,
    Remote,
    execute,
    kernels_of,
    local_session,
    printed,
)
from tests.reading import content, files_below
from tests.subprocesses.gpus.gpu_node import device_line, node_with_gpus
from tests.waiting import until


@pytest.fixture
def remote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Remote]:
    with kernels_of(local_session(tmp_path), tmp_path, monkeypatch, "local") as made:
        made.install()
        yield made


def test_start_execute_interrupt_restart_and_shut_down(remote: Remote) -> None:
    manager, client = remote.start()
    job = remote.job_of(manager)
    assert job.record().state is State.RUNNING
    assert execute(client, "import os; print(os.environ['SUBMARINE_JOB_ID'])") == (
        "ok",
        f"{job.id}\n",
    )
    assert (
        execute(client, "open('big', 'w').write('x' * 9_000_000); print(open('big').read())")[1]
        == "x" * 9_000_000 + "\n"
    )

    assert manager.provisioner is not None
    info = asyncio.run(manager.provisioner.get_provisioner_info())
    assert json.loads(json.dumps(info))["job_id"] == job.id

    # Interrupt.
    # Otherwise an error aborts requests that arrive shortly after the reply.
    sleep = "import time\nprint('in it', flush=True)\ntime.sleep(1000)"
    busy = client.execute(sleep, stop_on_error=False)
    until(lambda: "in it" in str(client.get_iopub_msg(timeout=PATIENCE)["content"].get("text")))
    manager.interrupt_kernel()
    assert client.get_shell_msg(timeout=PATIENCE)["content"]["ename"] == "KeyboardInterrupt", busy

    # Restart: the same container and connection, another process.
    assert execute(client, "import os; print(os.getpid()); a = 1")[0] == "ok"
    manager.restart_kernel()
    client.wait_for_ready(timeout=PATIENCE)
    assert execute(client, "a")[0] == "NameError"
    assert remote.job_of(manager).id == job.id

    # The kernel dies, but not its container.
    client.execute("import os; os._exit(7)")
    until(lambda: not manager.is_alive())
    assert manager.provisioner is not None
    assert asyncio.run(manager.provisioner.poll()) == 7
    assert job.record().state is State.RUNNING
    manager.restart_kernel(now=True)
    client.wait_for_ready(timeout=PATIENCE)
    assert remote.job_of(manager).id == job.id

    manager.shutdown_kernel()
    assert job.wait(PATIENCE).state is State.SUCCEEDED


def test_a_killed_container_is_a_dead_kernel_with_a_reason(remote: Remote) -> None:
    manager, client = remote.start()
    job, connection = remote.job_of(manager), manager.get_connection_info()
    execute(client, "a = 1")
    asked = client.execute("import time\nprint('in it', flush=True)\ntime.sleep(1000)")
    behind = client.execute("b = 2")  # On the same connection, after the first prints.
    until(lambda: "in it" in str(client.get_iopub_msg(timeout=PATIENCE)["content"].get("text")))
    assert job.handle is not None
    os.kill(int(job.handle["pid"]), signal.SIGKILL)
    until(lambda: not manager.is_alive())
    assert job.record().reason is EndReason.AGENT_LOST
    # The running cell gets the reason, once; the queued one is reported as not run.
    lost = "The container of the kernel is gone."
    for request, words in ((asked, lost), (behind, "This cell did not run")):
        reply = client.get_shell_msg(timeout=PATIENCE)
        assert reply["parent_header"]["msg_id"] == request
        heard = [reply, *_until_idle(client, request)]
        for message in heard[:2]:
            assert message["content"]["ename"] == "KernelLostError"
            assert message["content"]["evalue"].startswith(words)
        assert len(heard) == 2, heard

    # A restart by the user gets a new container behind the same ports, with the same key.
    manager.restart_kernel()
    client.wait_for_ready(timeout=PATIENCE)
    assert remote.job_of(manager).id != job.id
    assert manager.get_connection_info() == connection
    assert execute(client, "a")[0] == "NameError"


def _until_idle(client: BlockingKernelClient, asked: str) -> list[dict[str, Any]]:
    """Return the messages of a cell until the kernel is idle."""
    found: list[dict[str, Any]] = []
    while True:
        message = client.get_iopub_msg(timeout=PATIENCE)
        if message["parent_header"].get("msg_id") != asked:
            continue
        if message["msg_type"] == "status":
            return found
        found.append(message)


class Restarter:
    """Jupyter's restarter, with the methods that the provisioner uses."""

    restart_limit = 5

    def __init__(self) -> None:
        self.events: list[str] = []

    def _fire_callbacks(self, event: str) -> None:
        self.events.append(event)


def test_a_container_that_is_lost_during_a_restart_is_not_replaced(remote: Remote) -> None:
    """Jupyter restarts a kernel that has ended; its container ends shortly after."""
    manager, client = remote.start()
    job = remote.job_of(manager)
    manager._restarter = restarter = Restarter()
    execute(client, "a = 1")
    client.execute("import os; os._exit(7)")
    until(lambda: not manager.is_alive())
    assert job.handle is not None
    agent = psutil.Process(int(job.handle["pid"]))
    agent.suspend()
    provisioner: Any = manager.provisioner

    def lose() -> None:
        until(lambda: "started" in provisioner._remote._supervisor._answers)
        agent.kill()

    losing = threading.Thread(target=lose)
    losing.start()
    gone = "The container of the kernel is gone."
    with pytest.raises(SubmarineError, match=gone):
        manager.restart_kernel(now=True)
    losing.join()
    assert restarter.events == ["dead"]
    until(lambda: gone in str(client.get_iopub_msg(timeout=PATIENCE)["content"]))
    assert [row.job_id for row in remote.session.store.newest()] == [job.id]

    # A restart by the user gets a new container.
    manager.restart_kernel()
    client.wait_for_ready(timeout=PATIENCE)
    assert remote.job_of(manager).id != job.id
    assert restarter.restart_limit == 5


@pytest.mark.full
def test_a_container_that_is_cancelled_while_no_cell_runs(remote: Remote) -> None:
    manager, client = remote.start()
    remote.job_of(manager).cancel("somebody needs the GPU")
    until(lambda: not manager.is_alive())
    until(lambda: "somebody needs the GPU" in printed(client))


def test_a_container_without_a_server_ends(remote: Remote) -> None:
    remote.install(idle_timeout="1s")
    # The pings are less frequent than this limit, which must not end a connected kernel.
    server, said = remote.serve(code="import time; time.sleep(2.5)")
    job = remote.session.job(said["job"])
    assert job.record().state is State.RUNNING
    server.kill()
    record = job.wait(PATIENCE)
    assert record.state is State.SUCCEEDED
    assert b"no owner for 1 s" in b"".join(chunk.data for chunk in job.read_log("stderr"))


def test_a_restarted_server_finds_the_kernel(remote: Remote) -> None:
    server, said = remote.serve()
    server.kill()
    server.wait()
    manager = remote.manager()
    # Like a server that persists its kernels, in a new process.
    asyncio.run(manager._async_pre_start_kernel())
    assert manager.provisioner is not None
    asyncio.run(manager.provisioner.load_provisioner_info(said["info"]))
    manager._reconcile_connection_info(manager.provisioner.connection_info)
    assert remote.job_of(manager).id == said["job"]
    client = remote.connect(manager)
    assert execute(client, "print(x)") == ("ok", "42\n")
    # A console that uses the former connection file continues too.
    console = BlockingKernelClient(connection_file=str(remote.root / "connection.json"))
    console.load_connection_file()
    remote.clients.append(console)
    console.start_channels()
    console.wait_for_ready(timeout=PATIENCE)
    assert execute(console, "print(x + 1)") == ("ok", "43\n")


def test_only_the_same_notebook_gets_its_kernel_back(remote: Remote) -> None:
    server, said = remote.serve("work/digits.ipynb")
    other, _ = remote.start(JPY_SESSION_NAME="work/digits.ipynb")
    assert remote.job_of(other).id != said["job"], "it has an owner"
    other.shutdown_kernel()
    server.kill()
    server.wait()
    stranger, _their = remote.start(JPY_SESSION_NAME="work/other.ipynb")
    assert remote.job_of(stranger).id != said["job"]

    def back() -> tuple[object, BlockingKernelClient] | None:
        # The supervisor may not have detected the end of the server yet.
        manager, client = remote.start(JPY_SESSION_NAME="work/digits.ipynb")
        if remote.job_of(manager).id == said["job"]:
            return manager, client
        manager.shutdown_kernel(now=True)
        return None

    _, client = until(back)
    assert execute(client, "print(x)") == ("ok", "42\n")


def test_a_kernel_whose_gpus_are_idle_ends_with_its_reason(
    remote: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    devices = node_with_gpus(tmp_path, monkeypatch, device_line("GPU-kernel", 90))
    remote.install(gpu=1, idle_gpu="10s:end")
    manager, client = remote.start()
    job = remote.job_of(manager)
    # A cell is no use of a GPU; what it has saved is kept.
    saving = "import os, time\nplace = os.environ['SUBMARINE_CHECKPOINT_DIR']\n"
    saving += "print(file=open(os.path.join(place, 'weights'), 'w'))\ntime.sleep(1000)"
    asked = client.execute(saving)
    time.sleep(12)
    assert job.record().state is State.RUNNING
    replace_file(devices, device_line("GPU-kernel", 1).encode())
    until(lambda: not manager.is_alive())
    record = job.record()
    assert (record.reason, record.state) == (EndReason.IDLE_GPU, State.CANCELLED)
    assert "checkpoints/weights" in {output.path for output in record.outputs}
    [event] = [one for one in record.events if one.kind == "idle_gpu"]
    assert event.detail == record.detail
    reply = client.get_shell_msg(timeout=PATIENCE)
    assert reply["parent_header"]["msg_id"] == asked
    said = reply["content"]["evalue"]
    assert "The GPUs of the job were idle for longer than --idle-gpu" in said
    assert "The GPUs of kernel:0 were below 5 % for 1" in said


def test_the_key_is_only_in_a_file_of_the_container(remote: Remote) -> None:
    manager, client = remote.start()
    job = remote.job_of(manager)
    info: Mapping[str, Any] = manager.get_connection_info()
    key = bytes(info["key"])
    token = job.directory.secret().token.encode()
    execute(client, "print('something for the log')")
    assert job.handle is not None
    agent = psutil.Process(int(job.handle["pid"]))
    for process in [agent, *agent.children(recursive=True)]:
        for place in ("cmdline", "environ"):
            shown = Path(f"/proc/{process.pid}/{place}").read_bytes()
            assert key not in shown
            assert token not in shown
    holding = set()
    for path in files_below(remote.root):
        if key in content(path):
            holding.add(path.name)
            assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    assert holding == {"kernel.json"}
    assert stat.S_IMODE(Path(manager.connection_file).stat().st_mode) == 0o600


def test_an_environment_without_ipykernel(remote: Remote) -> None:
    bare = remote.root / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True)
    remote.install(python_env=f"path:{bare}")
    with pytest.raises(SubmarineError, match="ipykernel is not installed") as error:
        remote.manager().start_kernel()
    # A dialog of JupyterLab does not wrap lines.
    lines = str(error.value).replace(str(bare), "bare").splitlines()
    assert len(lines) > 2
    assert max(len(line) for line in lines) < 200
    assert str(error.value).count("ipykernel is not installed") == 1


def test_a_kernel_waits_for_a_device_of_this_machine(remote: Remote) -> None:
    """The agent answers before the kernel is started."""
    remote.install(gpu=4000, start_timeout="5s")
    with pytest.raises(SubmarineError, match="no container in 5 s"):
        remote.manager().start_kernel()


def test_invalid_options_are_rejected_before_the_submission(remote: Remote) -> None:
    with pytest.raises(UsageError, match="has no option 'worker'"):
        submit_kernel(remote.session, KernelRequest(NAME, {"worker": 3}))
    assert remote.session.store.ids() == set()


def test_a_kernel_behind_a_coordinator(remote: Remote) -> None:
    """Like a kernel with a node label or an image."""
    remote.install(avoid_node="elsewhere")
    manager, client = remote.start()
    job = remote.job_of(manager)
    assert job.directory.spec().distributed
    ended, printed = execute(client, "a = 1; print('x' * 3_000_000)")
    assert (ended, len(printed)) == ("ok", 3_000_001)
    manager.restart_kernel()
    client.wait_for_ready(timeout=PATIENCE)
    assert execute(client, "a")[0] == "NameError"
    assert remote.job_of(manager).id == job.id
    manager.shutdown_kernel()
    assert job.wait(PATIENCE).state is State.SUCCEEDED


def test_a_cancelled_start_leaves_no_job(remote: Remote) -> None:
    """The agent is stopped before it opens its port, so the kernel waits forever."""
    stopped = threading.Event()

    def stop() -> None:
        scratch = remote.root / "state" / "local"
        while not stopped.is_set():
            for pid in (f.parent for f in scratch.glob("*/agent.json")):
                for process in psutil.process_iter(["cmdline"]):
                    words = process.info["cmdline"] or []
                    # The agent itself, not the shell that starts it.
                    if str(pid) in words and words[0] == sys.executable:
                        process.suspend()
                        frozen.append(process)
                        return
            time.sleep(0.001)

    frozen: list[psutil.Process] = []
    thread = threading.Thread(target=stop)
    thread.start()
    remote.install(start_timeout="1s")
    try:
        with pytest.raises(SubmarineError, match="no container in 1 s"):
            remote.manager().start_kernel()
        (job_id,) = remote.session.store.ids()
        assert remote.session.job(job_id).directory.read_json("cancel.json") is not None
    finally:
        stopped.set()
        thread.join()
        for process in frozen:
            process.resume()
    assert remote.session.job(job_id).wait(PATIENCE).state is State.CANCELLED
