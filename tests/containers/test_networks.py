"""Networks of Docker containers."""

from __future__ import annotations

import pytest

from tests.containers.conftest import Containers
from tests.containers.hadoop import IMAGE

_IMAGE = ("--docker_image", IMAGE)
_SOURCE = """
import socket, time
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
    probe.connect(("10.77.0.1", 9))
    print("address", probe.getsockname()[0])
time.sleep(1)
"""
#: The cell has no name server for the containers that do not have the network of the node.
_NAMES = ("--conf", "docker_mounts=/etc/hosts:/etc/hosts:ro")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ((*_IMAGE, "--conf", "docker_network=none"), "docker_network = none: the tasks of a job"),
        (("--env", "YARN_CONTAINER_RUNTIME_TYPE=runc"), "runC images are not supported"),
    ],
)
def test_runtime_that_cannot_run_a_job_is_refused(
    containers: Containers, options: tuple[str, ...], sentence: str
) -> None:
    done = containers.run(_SOURCE, *options, check=False)
    assert done.status
    assert not done.job_id
    assert sentence in done.output


def test_network_that_the_node_does_not_allow_ends_the_job(containers: Containers) -> None:
    done = containers.run(_SOURCE, *_IMAGE, "--conf", "docker_network=lab", check=False)
    assert "The node does not allow the network of the container" in done.output
    assert containers.show(done)["reason"] == "launch_failed"


@pytest.mark.parametrize(
    ("network", "prefix"), [("host", "10.77.0."), ("gang", "10.79.0."), ("bridge", "10.78.0.")]
)
def test_gang_runs_in_a_network(containers: Containers, network: str, prefix: str) -> None:
    network_options = ("--conf", f"docker_network={network}", *_NAMES)
    done = containers.run(_SOURCE, *_IMAGE, "--worker", "2", *network_options)
    for index in range(2):
        assert f"address {prefix}" in containers.log(done, f"worker:{index}")
