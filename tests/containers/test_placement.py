"""Placement by racks, with YARN's default delay for locality."""

from __future__ import annotations

import sys

from tests.containers.conftest import Containers
from tests.containers.hadoop import IMAGE

_WHERE = "import socket, time; print('on', socket.gethostname()); time.sleep(1)"


def test_tasks_run_on_the_nodes_of_their_rack(containers: Containers) -> None:
    with containers.nodes("node1", "node2", "node3"):
        done = containers.run(_WHERE, "--worker", "3", "--rack", "/rack-b")
        logs = "".join(containers.log(done, f"worker:{index}") for index in range(3))
    places = {line for line in logs.splitlines() if line.startswith("on ")}
    assert places
    assert places <= {"on node1", "on node2"}


def test_rack_without_nodes_is_refused(containers: Containers) -> None:
    done = containers.run(_WHERE, "--rack", "/rack-b", check=False)
    assert done.status
    assert not done.job_id
    assert "there is no rack /rack-b; the cluster has /rack-a." in done.output


def test_more_gpus_than_a_node_has_are_refused(containers: Containers) -> None:
    done = containers.run(_WHERE, "--docker_image", IMAGE, "--gpu", "5", check=False)
    assert done.status
    assert not done.job_id
    assert "The job asks for 5 GPUs, and the largest node has 4 GPUs." in done.output


def test_full_port_range_ends_the_job(containers: Containers) -> None:
    hold = (
        "import socket, time\n"
        "held = [socket.create_server(('', port)) for port in range(23400, 23404)]\n"
        "print('held', flush=True)\n"
        "time.sleep(600)"
    )
    source = "print('never', 'printed')"
    options = ("--docker_image", IMAGE, "--worker", "2", "--conf", "port_range=23400-23403")
    with containers.cell.background([sys.executable, "-c", hold], ready="held"):
        done = containers.run(source, *options, check=False)
    assert done.status
    assert "No port of port_range 23400-23403 is free on node0" in done.output
    assert "restart" not in done.output
    assert "never printed" not in done.output
    assert containers.show(done)["reason"] == "launch_failed"
