"""Placement and refusals of the plan, as a pure function of the ResourceManager's answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from submarine_jobs.backends.yarn.cluster import HadoopConf
from submarine_jobs.backends.yarn.planning import (
    AGENT_MEMORY,
    ClusterView,
    make_gang_plan,
    make_plan,
    steps_of,
)
from submarine_jobs.backends.yarn.planning.single import MASTER_MEMORY, Steps
from submarine_jobs.model import JobSpec, Localization, Resources, Role
from submarine_runtime.yarn import (
    GPU,
    NVIDIA_GPU,
    find_queue,
    largest_node,
    nodes_of,
    offered_gpu_resource,
    queues_of,
)


def gpu(value: int) -> dict[str, Any]:
    return {"resourceInformation": [{"name": "yarn.io/gpu", "value": value}]}


def res(memory: int, vcores: int, gpus: int = 0) -> dict[str, Any]:
    return {"memory": memory, "vCores": vcores, "resourceInformations": gpu(gpus)}


def leaf(name: str, masters: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "queueName": name,
        "queuePath": f"root.{name}",
        "state": "RUNNING",
        "AMResourceLimit": masters,
        "userAMResourceLimit": masters,
        "usedAMResource": res(0, 0),
        "maximumAllocation": res(8192, 8, 2**63 - 1),
        **more,
    }


CAPACITY = {
    "scheduler": {
        "schedulerInfo": {
            "type": "capacityScheduler",
            "queues": {
                "queue": [
                    leaf("default", res(8192, 8, 4)),
                    leaf("narrow", res(832, 1, 1)),
                    leaf("off", res(8192, 8, 4), state="STOPPED"),
                    {
                        "queueName": "ml",
                        "state": "RUNNING",
                        "queues": {"queue": [leaf("deep", res(8192, 8), queuePath="root.ml.deep")]},
                    },
                ]
            },
        }
    }
}
FAIR = {
    "scheduler": {
        "schedulerInfo": {
            "type": "fairScheduler",
            "rootQueue": {
                "queueName": "root",
                "childQueues": {
                    "queue": [
                        {
                            "queueName": "root.ml",
                            "amMaxResources": res(2048, 4),
                            "maxContainerAllocation": res(4096, 4, 2),
                        }
                    ]
                },
            },
        }
    }
}
NODES = {
    "nodes": {
        "node": [
            {"state": "RUNNING", "totalResource": res(8192, 8, 4)},
            {"state": "LOST", "totalResource": res(99999, 99, 99)},
        ]
    }
}


def plan(resources: Resources, queue: str | None = None, **view: Any) -> Any:
    spec = JobSpec(name="x", backend="yarn", queue=queue, roles=(Role(resources=resources),))
    seen: dict[str, Any] = {
        "scheduler": CAPACITY,
        "nodes": NODES,
        "steps": Steps(64, 64),
        "knows_gpus": True,
        **view,
    }
    return make_plan(spec, ClusterView(**seen), "default")


def test_a_task_runs_with_its_master_gpus_included() -> None:
    found = plan(Resources(2048, 2, 3))
    assert found.errors == []
    (only,) = found.containers
    assert only["memory"] >= 2048 + MASTER_MEMORY + AGENT_MEMORY
    assert only["memory"] % 64 == 0
    assert (only["vcores"], only["gpus"]) == (2, 3)
    assert found.overhead == MASTER_MEMORY + AGENT_MEMORY


def test_a_narrow_queue_puts_the_task_beside_its_master_and_says_why() -> None:
    found = plan(Resources(2048, 1, 2), "narrow")
    master, task = found.containers
    assert found.errors == []
    assert master["gpus"] == 0
    assert task["gpus"] == 2
    assert master["memory"] + task["memory"] >= 2048 + found.overhead
    assert "beside" in found.placement
    assert "832 MiB" in found.placement


def test_sizes_are_rounded_as_the_scheduler_does() -> None:
    assert Steps(1024, 512).round(1) == 1024
    assert Steps(1024, 512).round(1025) == 1536


@pytest.mark.parametrize(
    ("resources", "queue", "sentence"),
    [
        (Resources(512, 1, 8), None, "The job asks for 8 GPUs, and the largest node has 4 GPUs."),
        (
            Resources(512, 1),
            "nope",
            "There is no queue nope; this cluster has default, narrow, deep.",
        ),
        (Resources(512, 1), "off", "Queue off is stopped"),
        (Resources(512, 1), "ml", "Queue ml accepts no jobs itself; choose one below it: deep."),
        (Resources(9000, 1), None, "the largest node has 8192 MiB"),
        (Resources(512, 9), None, "The job asks for 9 vcores, and the largest node has 8."),
    ],
)
def test_what_can_never_run_is_refused(
    resources: Resources, queue: str | None, sentence: str
) -> None:
    errors = plan(resources, queue).errors
    assert len(errors) == 1
    assert sentence in errors[0]


def acls(submit: str, administer: str = " ") -> dict[str, Any]:
    """Access lists of a queue as the ResourceManager of Hadoop 3.5 gives them."""
    lists = {"ADMINISTER_QUEUE": administer, "SUBMIT_APP": submit}
    entries = [{"accessType": kind, "accessControlList": text} for kind, text in lists.items()]
    return {"queueAcls": {"queueAcl": entries}}


@pytest.mark.parametrize(
    ("root", "queue", "user", "refused"),
    [
        (acls(" "), acls("ada,bob "), "eve", True),
        (acls(" "), acls("ada,bob "), "bob", False),
        (acls(" "), acls(" ", "eve "), "eve", False),
        (acls("eve "), acls("ada "), "eve", False),
        (acls("*"), acls(" "), "eve", False),
        (acls(" "), acls("ada researchers"), "eve", False),
        (acls(" "), acls(" "), "eve", True),
        (acls(" "), acls(" "), None, False),
        ({}, {}, "eve", False),
    ],
)
def test_a_queue_that_does_not_admit_the_user_is_refused_before_the_submit(
    root: dict[str, Any], queue: dict[str, Any], user: str | None, refused: bool
) -> None:
    big = res(8192, 8, 4)
    below = {"queue": [leaf("ml", big, **queue), leaf("open", big, **acls("eve,ada "))]}
    answer = {"scheduler": {"schedulerInfo": {"queues": below, **root}}}
    for instances in (1, 2):
        role = Role(resources=Resources(512), instances=instances)
        spec = JobSpec(name="x", backend="yarn", queue="ml", roles=(role,))
        judge = make_plan if instances == 1 else make_gang_plan
        found = judge(spec, ClusterView(answer, NODES, Steps(64, 64), True, user), "default")
        sentence = "User eve may not submit to queue ml; choose one of open."
        assert found.errors == ([sentence] if refused else [])


def test_gpus_need_the_resource_type_in_the_client_configuration() -> None:
    (error,) = plan(Resources(512, 1, 1), knows_gpus=False).errors
    assert "resource-types.xml" in error


def test_a_cluster_without_nodes() -> None:
    (error,) = plan(Resources(512, 1), nodes={"nodes": {}}).errors
    assert "no running node" in error


def test_the_fair_scheduler_is_understood() -> None:
    assert [q.name for q in queues_of(FAIR) if q.leaf] == ["ml"]
    assert len(plan(Resources(512, 1), "ml", scheduler=FAIR).containers) == 1
    assert len(plan(Resources(3000, 1), "ml", scheduler=FAIR).containers) == 2
    assert "scheduler gives 4096" in plan(Resources(6000, 1), "ml", scheduler=FAIR).errors[0]


def test_queues_of_the_fair_scheduler_have_their_path_as_name_and_a_maximum() -> None:
    below = {"queueName": "root.research.vision", "maxResources": res(1536, 4)}
    above = {"queueName": "root.research", "childQueues": {"queue": [below]}}
    root = {"queueName": "root", "childQueues": {"queue": [above]}}
    answer = {"scheduler": {"schedulerInfo": {"rootQueue": root}}}
    assert [queue.name for queue in queues_of(answer)] == ["root", "research", "research.vision"]
    assert find_queue(queues_of(answer), "vision") is None
    assert plan(Resources(512, 1), "research.vision", scheduler=answer).errors == []
    refused = plan(Resources(2048, 1), "root.research.vision", scheduler=answer).errors
    assert "queue research.vision may ever hold 1536 MiB" in refused[0]


def test_the_fair_scheduler_rounds_by_an_increment_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "core-site.xml").write_text("<configuration/>")
    conf = HadoopConf(tmp_path)
    assert steps_of(conf, 64).round(952) == 960
    assert steps_of(conf, 64, fair=True).round(952) == 1024


def test_queues_are_found_by_name_and_by_path() -> None:
    found = queues_of(CAPACITY)
    deep = find_queue(found, "root.ml.deep")
    assert deep is not None
    assert deep is find_queue(found, "deep")


@pytest.mark.parametrize(
    ("source", "target", "sentence"),
    [
        ("ftp://x/y", "y", "only local paths"),
        ("/no/such/file", "f", "no such file"),
        ("hdfs://a/b", "../b", "not a name below the working directory"),
        ("hdfs://a/b", "/b", "not a name below the working directory"),
    ],
)
def test_localization_is_checked(source: str, target: str, sentence: str) -> None:
    spec = JobSpec(name="x", backend="yarn", localization=(Localization(source, target),))
    view = ClusterView(CAPACITY, NODES, Steps(64, 64), True)
    assert sentence in make_plan(spec, view, "default").errors[0]


def nodes_with(*offers: dict[str, int], state: str = "RUNNING") -> dict[str, Any]:
    """An answer to ``/nodes`` of nodes that offer GPUs by these names."""
    infos = [[{"name": k, "value": v} for k, v in offer.items()] for offer in offers]
    totals = [
        {"memory": 8192, "vCores": 8, "resourceInformations": {"resourceInformation": info}}
        for info in infos
    ]
    return {"nodes": {"node": [{"state": state, "totalResource": total} for total in totals]}}


@pytest.mark.parametrize(
    ("offers", "name", "count"),
    [
        ([{GPU: 2}], GPU, 2),
        ([{NVIDIA_GPU: 4}], NVIDIA_GPU, 4),
        ([{GPU: 0, NVIDIA_GPU: 4}], NVIDIA_GPU, 4),
        ([{GPU: 2, NVIDIA_GPU: 4}], GPU, 2),
        ([{NVIDIA_GPU: 4}, {GPU: 1}], GPU, 4),
        ([{"x.io/fpga": 3}], "", 0),
    ],
)
def test_the_resource_of_gpus_is_the_one_that_nodes_offer(
    offers: list[dict[str, int]], name: str, count: int
) -> None:
    answer = nodes_with(*offers)
    assert offered_gpu_resource(answer) == name
    assert largest_node(nodes_of(answer))[0].gpus == count
    assert offered_gpu_resource(nodes_with(*offers, state="LOST")) == ""


def test_an_unknown_resource_of_gpus_is_named() -> None:
    found = plan(Resources(512, 1, 1), nodes=nodes_with({NVIDIA_GPU: 4}), knows_gpus=False)
    (error,) = found.errors
    assert "does not know nvidia.com/gpu" in error
