"""The parser of the ResourceManager's JSON: fields, bounds, and values of wrong types."""

from __future__ import annotations

import random
from typing import Any

import pytest

from submarine_jobs.backends.yarn.cluster import observe, overview_of
from submarine_jobs.backends.yarn.planning import ClusterView, make_gang_plan, make_plan
from submarine_jobs.backends.yarn.planning.single import Steps
from submarine_jobs.model import JobSpec, Resources, Role
from submarine_runtime.yarn import (
    Application,
    ClusterAnswers,
    ContainerRequest,
    Size,
    application_of,
    applications_of,
    attempt_diagnostics,
    containers_of,
    explain_pending,
    find_queue,
    largest_node,
    nodes_of,
    queues_of,
    smallest_memory,
)
from tests.unit.yarn.recorded_waits import recorded_waits

SCENES = ("queue-limit", "gpu-all-held", "masters-share", "user-limit")
WRONG: tuple[Any, ...] = (
    None,
    True,
    -1,
    1 << 70,
    10**400,
    float("inf"),
    float("nan"),
    "1e999",
    "x\x1b[31m",
    [],
    [None],
    [[{}]],
    {},
    {"queue": {"queue": 1}},
    "\ud800",
)


def places(raw: Any) -> list[tuple[Any, Any]]:
    """Return each container of a value in a JSON document, with its key."""
    items = raw.items() if isinstance(raw, dict) else enumerate(raw)
    found: list[tuple[Any, Any]] = []
    for key, value in items:
        found.append((raw, key))
        if isinstance(value, dict | list):
            found.extend(places(value))
    return found


def use_all(answers: dict[str, Any]) -> None:
    """Use the answers as containers and the notebook's side do."""
    requests = [ContainerRequest(2, 1024, 1, 1), ContainerRequest(1, 512, label="x", master=True)]
    for queue in ("gpu", "root.default", "narrow"):
        sentence = explain_pending(requests, queue, ClusterAnswers(**answers), user="root")
        assert sentence.isprintable()
    overview_of(**answers)
    smallest_memory(answers["scheduler"])
    for instances, plan in ((1, make_plan), (2, make_gang_plan)):
        role = Role(resources=Resources(512, 1, 1), instances=instances)
        spec = JobSpec(name="x", backend="yarn", queue="gpu", roles=(role,))
        view = ClusterView(answers["scheduler"], answers["nodes"], Steps(64, 64), True, "eve")
        plan(spec, view, "default")

    class Answering:
        url = "http://rm:8088"

        def get(self, path: str, **query: str) -> Any:
            return answers["apps"]

    identities = [app.id for app in applications_of(answers["apps"])]
    handles = {f"j-{number}": {"application_id": each} for number, each in enumerate(identities)}
    observe(Answering(), handles)  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize("scene", SCENES)
def test_a_value_of_a_wrong_type_counts_as_missing(scene: str) -> None:
    chance = random.Random(scene)
    for _ in range(60):
        answers = recorded_waits(scene)
        for holder, key in chance.sample(places(answers), 40):
            if holder is not answers:
                holder[key] = chance.choice(WRONG)
        use_all(answers)


@pytest.mark.slow
@pytest.mark.parametrize("field", ["scheduler", "nodes", "apps"])
@pytest.mark.parametrize("wrong", WRONG, ids=repr)
def test_an_answer_of_a_wrong_type_is_empty(field: str, wrong: Any) -> None:
    for key in ("", "scheduler", "nodes", "apps"):
        answers = recorded_waits("queue-limit")
        answers[field] = {key: wrong} if key else wrong
        use_all(answers)


def test_each_field_of_an_application_may_have_a_wrong_type() -> None:
    names = [name for name in dir(Application) if not name.startswith("_")]
    recorded = recorded_waits("gpu-all-held")["apps"]["apps"]["app"][0]
    raw: dict[str, Any] = dict.fromkeys(
        [*recorded, "resourceSecondsMap", "launchTime", "trackingUrl", "applicationTags"]
    )
    for wrong in WRONG:
        app = Application(dict.fromkeys(raw, wrong))
        for name in names:
            getattr(app, name)
        assert app.label.isprintable()
        containers_of({"container": wrong})
        containers_of({"container": {"containerId": wrong, "startedTime": wrong}})
        list(attempt_diagnostics({"appAttempts": {"appAttempt": wrong}}))
        list(attempt_diagnostics({"appAttempts": {"appAttempt": {"diagnosticsInfo": wrong}}}))
        application_of({"app": wrong})


@pytest.mark.slow
def test_deep_and_long_answers_are_bounded() -> None:
    queue: dict[str, Any] = {"queueName": "leaf"}
    for _ in range(300):
        queue = {"queueName": "q", "queues": {"queue": [queue]}, "childQueues": {"queue": [queue]}}
    many = {"queueName": "root", "queues": {"queue": [{"queueName": "q"}] * 50_000}}
    for info in (queue, {"rootQueue": queue}, many):
        found = queues_of({"scheduler": {"schedulerInfo": info}})
        assert 0 < len(found) <= 10_000
        assert max(len(each.above) for each in found) <= 50
    node = {"state": "RUNNING", "nodeHostName": "h" * 5000, "nodeLabels": ["l" * 5000]}
    (only,) = nodes_of({"nodes": {"node": [node]}})
    assert (len(only.host), len(only.labels[0])) == (500, 500)


def test_numbers_are_finite_and_not_larger_than_java_has() -> None:
    for number, expected in (
        ("8", 8),
        (8.9, 8),
        ("Infinity", 0),
        (1 << 70, 0),
        (2**63 - 1, 2**63 - 1),
    ):
        (found,) = nodes_of(
            {"nodes": {"node": {"state": "RUNNING", "totalResource": {"memory": number}}}}
        )
        assert found.total == Size(expected, 0, 0)


@pytest.mark.parametrize(
    ("answer", "names"),
    [
        (None, ["default"]),
        ({"scheduler": {"schedulerInfo": {"type": "fifoScheduler", "capacity": 1.0}}}, ["default"]),
    ],
)
def test_the_fifo_scheduler_has_one_queue(answer: Any, names: list[str]) -> None:
    found = queues_of(answer)
    assert [queue.name for queue in found] == names
    assert all(queue.leaf and queue.running for queue in found)


def test_queues_of_a_capacity_scheduler() -> None:
    scheduler = recorded_waits("masters-share")["scheduler"]
    found = queues_of(scheduler)
    assert "root" not in [queue.path for queue in found]
    narrow = find_queue(found, "narrow")
    assert narrow is not None
    assert narrow is find_queue(found, "root.narrow")
    assert [queue.path for queue in narrow.above] == ["root"]
    assert narrow.masters is not None
    assert narrow.masters.memory == 1664


def test_the_smallest_container_of_a_capacity_scheduler() -> None:
    info = {"name": "memory-mb", "minimumAllocation": 64}
    least = {"resourceInformations": {"resourceInformation": [info]}}
    parts = {"queueCapacitiesByPartition": [{"configuredMinResource": least}]}
    queue = {"queueName": "default", "capacities": parts}
    scheduler = {"scheduler": {"schedulerInfo": {"queues": {"queue": [queue]}}}}
    assert smallest_memory(scheduler) == 64
    info["minimumAllocation"] = 0
    assert smallest_memory(scheduler) is None


def test_the_largest_node_may_be_decommissioned_later() -> None:
    def node(state: str, memory: int) -> dict[str, Any]:
        return {"state": state, "totalResource": {"memory": memory, "vCores": 1}}

    answer = {"nodes": {"node": [node("RUNNING", 1), node("DECOMMISSIONING", 2), node("LOST", 3)]}}
    assert largest_node(nodes_of(answer)) == (Size(2, 1, 0), 2)
    assert largest_node([]) == (Size(), 0)
