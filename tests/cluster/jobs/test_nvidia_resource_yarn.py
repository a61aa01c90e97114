"""Jobs on a cluster whose nodes offer GPUs as ``nvidia.com/gpu``, as the device framework does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from submarine_jobs.client import Job, Session
from submarine_jobs.errors import RefusedError
from submarine_jobs.model import Resources, Role
from submarine_minicluster import Settings
from submarine_runtime.protocol import State
from tests.cluster.own_cluster import own_cluster
from tests.submission import make_job, submitting
from tests.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.full]

LIMIT = 180.0
HOLD = "echo policy=$NVIDIA_TOPO_POLICY; while ! test -e '{go}'; do sleep 0.1; done"


@pytest.fixture(scope="module")
def nvidia() -> Iterator[Session]:
    """A session on such a cluster; its nodes count devices that do not exist."""
    properties = (
        "yarn.resource-types=nvidia.com/gpu",
        "yarn.nodemanager.resource-type.nvidia.com/gpu=4",
    )
    with own_cluster("nvidia", Settings(gpus=0, properties=properties)) as (_cluster, session):
        yield session


def allocated(session: Session, job: Job) -> int:
    """How many GPUs YARN has given to the job, by the name of the cluster."""
    backend: Any = session.backend()
    handle = backend.find(job.id)
    app = backend.rm.get(f"/apps/{handle['application_id']}")["app"]
    infos = app["resourceInfo"]["resourceUsagesByPartition"][0]["used"]["resourceInformations"]
    found = {one["name"]: one["value"] for one in infos["resourceInformation"]}
    assert "yarn.io/gpu" not in found
    return int(found["nvidia.com/gpu"])


@pytest.mark.parametrize("gang", [False, True], ids=["one task", "gang"])
def test_a_job_gets_its_gpus_and_their_topology(
    nvidia: Session, tmp_path: Path, gang: bool
) -> None:
    go = tmp_path / "go"
    size = Resources(256, gpus=1 if gang else 3)
    role = Role("worker", 2 if gang else 1, size, command=HOLD.format(go=go))
    with submitting(nvidia, backend="yarn") as submit:
        job = submit("pass", roles=(role,), framework="any", policy="all", gpu_topology="spread")
        until(lambda: b"policy=SPREAD" in job.log("stdout").data, "the program runs", LIMIT)
        assert allocated(nvidia, job) == (2 if gang else 3)
        devices = [len(task.gpus) for task in job.record().tasks]
        assert devices == ([1, 1] if gang else [3])
        go.touch()
        assert job.wait(LIMIT).state is State.SUCCEEDED


def test_more_gpus_than_a_node_has_are_one_sentence_and_nothing_runs(nvidia: Session) -> None:
    backend: Any = nvidia.backend()
    before = backend.rm.get("/metrics")["clusterMetrics"]["appsSubmitted"]
    with pytest.raises(RefusedError, match="asks for 5 GPUs, and the largest node has 4 GPUs"):
        nvidia.submit(*make_job("pass", backend="yarn", gpus=5))
    assert backend.rm.get("/metrics")["clusterMetrics"]["appsSubmitted"] == before
