"""Sentences about missing containers, from recorded answers of a ResourceManager."""

from __future__ import annotations

from typing import Any

import pytest

from submarine_runtime.yarn import (
    ClusterAnswers,
    ContainerRequest,
    Size,
    applications_of,
    explain_pending,
    find_queue,
    nodes_of,
    queues_of,
)
from tests.unit.yarn.recorded_waits import recorded_waits


def sentence(found: Any, who: str, queue: str, *needs: ContainerRequest, user: str = "root") -> str:
    ids = {app["name"]: app["id"] for app in found["apps"]["apps"]["app"]}
    return explain_pending(
        needs, queue, ClusterAnswers(**found), user=user, application_id=ids.get(who, "")
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("situation", "who", "queue", "need", "expected"),
    [
        (
            "queue-limit",
            "asks",
            "gpu",
            ContainerRequest(1, 1024, 1, 1),
            "queue gpu has 0 of 4 GPUs free, job digits-20261121-0001 holds 4",
        ),
        (
            "gpu-fragmented",
            "second",
            "default",
            ContainerRequest(2, 1024, 1, 2),
            "no node has 2 GPUs free: the nearest, localhost:18244, has 1 GPU, "
            'application "gobbler" of root holds 6',
        ),
        (
            "gpu-all-held",
            "third",
            "root.default",
            ContainerRequest(2, 512, 1, 1),
            'queue default has 0 of 8 GPUs free, application "gobbler" of root holds 6, '
            '2 are reserved for application "second" of root',
        ),
        (
            "memory-no-node",
            "second",
            "default",
            ContainerRequest(1, 1800),
            "no node has 1800 MiB free: the nearest, localhost:23703, has 1536 MiB, "
            'application "gobbler" of root holds 13824 MiB, this job holds 512 MiB',
        ),
        (
            "memory-master-waits",
            "master",
            "default",
            ContainerRequest(1, 4096, master=True),
            'queue default has 2048 of 16384 MiB free, application "gobbler" of root holds '
            '13824 MiB, application "second" of root holds 512 MiB',
        ),
        (
            "masters-share",
            "two",
            "narrow",
            ContainerRequest(1, 1024, master=True),
            "queue narrow: masters may hold 1664 MiB in all and hold 1024 MiB; this one needs "
            "1024 MiB",
        ),
        (
            "user-limit",
            "one",
            "narrow",
            ContainerRequest(1, 1024),
            "queue narrow lets one user hold 1 vcore and you hold 2 vcores, this job holds 2",
        ),
        (
            "masters-share",
            "one",
            "gpu",
            ContainerRequest(3, 6000),
            "queue gpu may hold 16384 MiB, and 3 containers need 18000 MiB",
        ),
        (
            "masters-share",
            "one",
            "gpu",
            ContainerRequest(1, 9000, 2),
            "no node is large enough for 9000 MiB: the nearest, localhost:18244, has 8192 MiB in "
            "all",
        ),
        (
            "masters-share",
            "one",
            "gpu",
            ContainerRequest(2, 1024, nodes=("n7",)),
            "n7 is not running",
        ),
        (
            "masters-share",
            "one",
            "gpu",
            ContainerRequest(2, 1024, label="fast"),
            "no running node has the label fast",
        ),
        (
            "masters-share",
            "one",
            "gpu",
            ContainerRequest(2, 1024),
            "queue gpu has space; the scheduler is about to assign it",
        ),
    ],
)
def test_recorded_waits(
    situation: str, who: str, queue: str, need: ContainerRequest, expected: str
) -> None:
    assert sentence(recorded_waits(situation), who, queue, need) == expected


def test_holders_are_named_before_the_share_of_masters() -> None:
    """A cluster with few GPUs, each of which a single task in its master's container holds."""
    found = recorded_waits("queue-limit")
    gpu = ContainerRequest(1, 1024, 1, 1, master=True)
    has = "queue gpu has 0 of 4 GPUs free, job digits-20261121-0001 holds 4"
    assert sentence(found, "asks", "gpu", gpu) == has
    (queue,) = [one for one in _queues(found["scheduler"]) if one.get("queueName") == "gpu"]
    for usage in queue["resources"]["resourceUsagesByPartition"]:
        usage["amLimit"] = usage["amUsed"] = usage["used"]
    queue["AMResourceLimit"] = queue["usedAMResource"] = queue["resourcesUsed"]
    assert sentence(found, "asks", "gpu", gpu) == has


def _queues(raw: Any) -> list[Any]:
    """Yield each object that may be a queue."""
    if isinstance(raw, list):
        return [found for one in raw for found in _queues(one)]
    if not isinstance(raw, dict):
        return []
    return [raw, *(found for one in raw.values() for found in _queues(one))]


def test_the_first_missing_container_is_explained() -> None:
    found = recorded_waits("queue-limit")
    told = sentence(found, "asks", "gpu", ContainerRequest(2, 512), ContainerRequest(1, 512, 1, 1))
    assert told == "queue gpu has 0 of 4 GPUs free, job digits-20261121-0001 holds 4"


def test_a_request_larger_than_the_free_space() -> None:
    found = recorded_waits("memory-no-node")
    told = sentence(found, "second", "default", ContainerRequest(3, 1024))
    assert told.startswith("queue default has 2048 of 16384 MiB free")
    found["scheduler"] = None  # Without queues only the nodes count.
    assert sentence(found, "second", "default", ContainerRequest(3, 1000)).startswith(
        "the cluster has 2048 of 16384 MiB free"
    )


def test_labels() -> None:
    found = recorded_waits("queue-limit")
    busy = max(found["nodes"]["nodes"]["node"], key=lambda node: node["usedVirtualCores"])
    busy["nodeLabels"] = ["fast"]
    told = sentence(found, "asks", "gpu", ContainerRequest(1, 1024, 1, 4, label="fast"))
    # A queue has its own limit for a label; without that the nodes decide.
    assert told.startswith("the nodes with the label fast have 0 of 4 GPUs free")
    found["scheduler"]["scheduler"]["schedulerInfo"]["queues"]["queue"][1]["nodeLabels"] = ["slow"]
    queue = found["scheduler"]["scheduler"]["schedulerInfo"]["queues"]["queue"][1]["queueName"]
    told = sentence(found, "asks", queue, ContainerRequest(1, 1024, label="fast"))
    assert told == f"queue {queue} may not use nodes with the label fast"


def test_no_nodes_and_malformed_answers() -> None:
    found = recorded_waits("queue-limit")
    for node in found["nodes"]["nodes"]["node"]:
        node["state"] = "LOST"
    assert (
        sentence(found, "asks", "gpu", ContainerRequest(1, 1)) == "the cluster has no running node"
    )
    assert explain_pending([ContainerRequest(0, 1)], "gpu", ClusterAnswers(None, None)) == ""
    for nonsense in (None, {}, {"nodes": None}, {"nodes": {"node": ["x"]}}):
        told = explain_pending(
            [ContainerRequest(1, 1)], "q", ClusterAnswers(nonsense, nonsense, nonsense)
        )
        assert told == "the cluster has no running node"


def test_text_of_the_cluster_is_cut_and_printable() -> None:
    found = recorded_waits("gpu-fragmented")
    for app in found["apps"]["apps"]["app"]:
        app.update(name="\x1b[31m" + "x" * 500, applicationTags="submarine_job:" + "y\n" * 500)
    told = sentence(found, "nobody", "default", ContainerRequest(1, 1024, 1, 4))
    assert told.isprintable()
    assert len(told) < 600


def test_the_fair_scheduler_and_an_old_hadoop() -> None:
    scheduler = {
        "scheduler": {
            "schedulerInfo": {
                "type": "fairScheduler",
                "rootQueue": {
                    "queueName": "root",
                    "maxResources": {"memory": 16384, "vCores": 16},
                    "usedResources": {"memory": 6144, "vCores": 2},
                    "childQueues": {
                        "queue": {
                            "queueName": "root.ml",
                            "maxResources": {"memory": 8192, "vCores": 8},
                            "usedResources": {"memory": 6144, "vCores": 2},
                        }
                    },
                },
            }
        }
    }
    node = {
        "state": "RUNNING",
        "nodeHostName": "n1",
        "usedMemoryMB": 6144,
        "availMemoryMB": 2048,
        "usedVirtualCores": 2,
        "availableVirtualCores": 6,
    }
    nodes = {"nodes": {"node": [node]}}
    told = explain_pending([ContainerRequest(1, 4096)], "ml", ClusterAnswers(scheduler, nodes))
    assert told == "queue ml has 2048 of 8192 MiB free"
    assert [one.total for one in nodes_of(nodes)] == [Size(8192, 8, 0)]
    queue = find_queue(queues_of(scheduler), "root.ml")
    assert queue is not None
    assert [above.path for above in queue.above] == ["root"]


def test_holders_are_named_by_job_and_counted_beyond_three() -> None:
    apps = {
        "apps": {
            "app": [
                {
                    "id": f"application_1_{number}",
                    "user": "ada",
                    "name": "n",
                    "state": "RUNNING",
                    "queue": "root.ml",
                    "allocatedMB": 1000 * number,
                    "applicationTags": f"submarine,submarine_job:job-{number}",
                }
                for number in range(1, 6)
            ]
        }
    }
    assert applications_of(apps)[0].label == "job job-1"
    found = {**recorded_waits("memory-no-node"), "apps": apps, "scheduler": None}
    told = explain_pending(
        [ContainerRequest(1, 2000)],
        "ml",
        ClusterAnswers(**found),
        application_id="application_1_4",
    )
    assert told.endswith(
        "has 1536 MiB, job job-5 holds 5000 MiB, this job holds 4000 MiB, "
        "job job-3 holds 3000 MiB, 2 others hold 3000 MiB"
    )
