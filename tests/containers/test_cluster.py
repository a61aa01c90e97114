"""LinuxContainerExecutor, Docker, GPU isolation and several nodes."""

from __future__ import annotations

import pytest

from tests.containers.cell import REPOSITORY
from tests.containers.conftest import Containers
from tests.containers.hadoop import IMAGE

_DEVICES = """
import glob, os, platform, time

def opens(device):
    try:
        os.close(os.open(device, os.O_RDONLY))
    except PermissionError:
        return False
    return True

print("uid", os.getuid())
print("python", platform.python_version())
print("devices", [device for device in sorted(glob.glob("/dev/nvidia?")) if opens(device)])
print("repository", os.path.exists({repository!r}))
time.sleep(3)
"""


def _program() -> str:
    return _DEVICES.format(repository=str(REPOSITORY))


@pytest.mark.parametrize(("user", "uid"), [("alice", 2101), ("bob", 2102)])
def test_native_task_runs_as_its_user_with_its_device(
    containers: Containers, user: str, uid: int
) -> None:
    done = containers.run(_program(), "--gpu", "1", user=user)
    assert f"uid {uid}\n" in done.output
    assert "repository True\n" in done.output
    assert "devices ['/dev/nvidia0']\n" in done.output
    assert "SUCCEEDED" in done.output


def test_tasks_in_an_image_have_different_devices(containers: Containers) -> None:
    done = containers.run(_program(), "--docker_image", IMAGE, "--worker", "2", "--gpu", "1")
    logs = [containers.log(done, f"worker:{index}") for index in range(2)]
    for log in logs:
        assert "uid 2101\n" in log
        assert "repository False\n" in log
    devices = {line for log in logs for line in log.splitlines() if line.startswith("devices")}
    assert devices == {"devices ['/dev/nvidia0']", "devices ['/dev/nvidia1']"}


def test_private_files_of_a_job_are_closed_to_other_users(containers: Containers) -> None:
    source = """
    import time
    print("running", flush=True)
    time.sleep(1)
    """
    done = containers.run(source)
    status, output = containers.submarine("logs", done.job_id, user="bob", check=False)
    assert status
    assert "running" not in output


def test_gang_runs_on_three_nodes(containers: Containers) -> None:
    source = "import socket, time; print('on', socket.gethostname()); time.sleep(2)"
    with containers.nodes("node1", "node2"):
        done = containers.run(source, "--worker", "3", "--spread")
        logs = "".join(containers.log(done, f"worker:{index}") for index in range(3))
    assert {line for line in logs.splitlines() if line.startswith("on ")} == {
        "on node0", "on node1", "on node2",
    }  # fmt: skip
