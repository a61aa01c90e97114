"""Placement by racks, with YARN's default delay for locality."""

from __future__ import annotations

from tests.containers.conftest import Containers

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
