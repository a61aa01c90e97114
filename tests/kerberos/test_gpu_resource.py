"""GPUs that the nodes of a cluster with Kerberos offer as ``nvidia.com/gpu``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from submarine_minicluster import Minicluster, Settings
from submarine_minicluster.pytest_plugin import running
from tests.kerberos.helpers import User, allocated
from tests.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.full]

HOLD = "echo policy=$NVIDIA_TOPO_POLICY; while ! test -e '{go}'; do sleep 0.1; done"


@pytest.fixture
def cluster() -> Iterator[Minicluster]:
    """Its node counts devices that do not exist."""
    properties = (
        "yarn.resource-types=nvidia.com/gpu",
        "yarn.nodemanager.resource-type.nvidia.com/gpu=4",
    )
    settings = Settings(kerberos=True, https=True, gpus=0, properties=properties)
    with running("SUBMARINE_TEST_KERBEROS_NVIDIA", settings) as found:
        yield found


def test_a_gang_gets_its_gpus_and_their_topology(cluster: Minicluster, tmp_path: Path) -> None:
    alice, go = User(cluster, "alice", tmp_path / "alice"), tmp_path / "go"
    words = ("run", "--num_workers", "2", "--worker_launch_cmd", HOLD.format(go=go))
    size = ("--worker_resources", "memory=256M,vcores=1,gpu=2", "--gpu-topology", "spread")
    try:
        refused = alice.run(*words, "--worker_resources", "memory=256M,vcores=1,gpu=5")
        assert refused.returncode == 2
        assert "asks for 5 GPUs, and the largest node has 4 GPUs" in refused.stderr

        started = alice.json(*words, *size)

        def printed() -> bool:
            log = alice.run("logs", started["job_id"], "--task", "worker:1")
            return "policy=SPREAD" in log.stdout

        until(printed, "the program runs", 180)
        job = alice.json("show", started["job_id"])
        found = allocated(cluster, job)
        assert found["nvidia.com/gpu"] == 4
        assert "yarn.io/gpu" not in found
        assert [len(task["gpus"]) for task in job["tasks"]] == [2, 2]
        go.touch()
        assert alice.run("wait", started["job_id"]).returncode == 0
    finally:
        alice.run("doctor", "--stop-driver")
